"""Operators that look at devices or dtypes in a way of their own; both engines."""

from __future__ import annotations

import re

import pytest
import torch


def test_where_takes_two_numbers_of_the_host(there):
    mask = torch.tensor([True, False], device=there.device)
    assert torch.where(mask, torch.tensor(1.0), torch.tensor(2.0)).tolist() == [1.0, 2.0]


def test_a_mask_on_the_host_does_not_fill_a_tensor_elsewhere(there):
    x = torch.ones(2, device=there.device)
    text = f"expected self and mask to be on the same device, but got mask on cpu and self on {x.device}"
    with pytest.raises(RuntimeError, match=re.escape(text)):
        x.masked_fill_(torch.tensor([True, False]), 0.0)
    assert [event.kind for event in there.recorder.of("devices")] == ["devices"]


@pytest.mark.parametrize("source", [lambda: torch.ones(2), lambda: torch.ones(2).untyped_storage()])
def test_memory_of_another_device_is_not_taken_over(source):
    from assay.pretend import pretend

    with pretend("cuda", engine="native") as gpu:
        text = 'storage of a tensor on device "cuda:0" to a storage on different device "cpu"'
        with pytest.raises(RuntimeError, match=re.escape(text)):
            torch.empty(0, device=gpu.device).set_(source())


@pytest.mark.parametrize(
    ("operate", "kernel"),
    [
        (lambda x: x @ x, "addmm_cuda"),
        (lambda x: torch.bmm(x[None], x[None]), "baddbmm_cuda"),
        (lambda x: x @ x[0], "addmv_impl_cuda"),
        (lambda x: x[0] @ x[0], "dot"),
    ],
)
def test_cuda_has_no_matrix_products_of_whole_numbers(cuda, operate, kernel):
    x = torch.ones(2, 2, dtype=torch.int64, device=cuda.device)
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Long'"):
        operate(x)
    assert [event.kind for event in cuda.recorder.of("dtype")] == ["dtype"]
    operate(x.float())


def test_a_layer_norm_on_mps_does_not_take_weights_of_the_host(mps):
    with pytest.raises(RuntimeError, match="Placeholder storage has not been allocated on MPS device!"):
        torch.nn.functional.layer_norm(torch.ones(2, 3, device=mps.device), (3,), torch.ones(3), torch.zeros(3))


def test_what_only_the_cpus_kernel_lacks_is_said_to_be_its_limit():
    from assay.pretend import pretend

    with pretend("cuda", engine="native") as gpu:
        x = torch.arange(5, device=gpu.device)
        with pytest.raises(NotImplementedError, match=r"assay: pretend cuda:0 cannot run aten::histc .* CPU's"):
            torch.histc(x, 4)
        assert [event.kind for event in gpu.recorder.of("unsupported")] == ["unsupported"]
