"""CPU scalars may be read beside a device's tensors, and not be written to from there.

Source: ``TensorIteratorBase::compute_types`` in aten/src/ATen/TensorIterator.cpp of pytorch/pytorch, which exempts a
CPU scalar from the check of devices unless it is an output.
"""

from __future__ import annotations

import pytest
import torch

from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

pytestmark = pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_total_on_the_cpu_cannot_take_a_sum_from_a_device(kind, shape):
    total = torch.zeros(shape, dtype=torch.float64)
    with pretend(kind, engine="native") as device:
        with pytest.raises(RuntimeError, match=f"same device, but found at least two devices, {kind}:0 and cpu!"):
            total += torch.ones(shape, device=device.device)
        assert [event.kind for event in device.events] == ["devices"]


@pytest.mark.parametrize("kind", ["cuda", "mps", "xpu"])
def test_a_total_on_a_device_can_take_a_number_from_the_cpu(kind):
    with pretend(kind, engine="native") as device:
        total = torch.zeros(2, device=device.device)
        total += torch.tensor(1.0)
        assert (total + torch.tensor(1.0)).tolist() == [2.0, 2.0]
