from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.devices import self_test
from assay.devices import selftest as module


def outcome(run, oracle):
    arrays = (np.arange(6) << 40, np.arange(6), np.ones(6, dtype=np.float32))
    return module._try("it", torch.device("cpu"), run, oracle, arrays)


def test_the_cpu_passes_every_operation():
    test = self_test("cpu")
    assert test.passed
    assert [each.name for each in test.outcomes] == list(module.OPERATIONS)
    assert test.failures == ()


def test_it_runs_once_a_device():
    assert self_test("cpu") is self_test(torch.device("cpu"))


def test_sums_that_went_through_float32_fail():
    got = outcome(lambda n, i, f: n.float().cumsum(0).long(), lambda n, i, f: n.cumsum() + 1)
    assert not got.passed
    assert got.detail == "6 of 6 numbers are wrong"


def test_sums_that_went_through_int32_fail():
    got = outcome(lambda n, i, f: n.int().long(), lambda n, i, f: n)
    assert got.detail == "5 of 6 numbers are wrong"


def test_another_dtype_or_shape_fails():
    assert not outcome(lambda n, i, f: n.int() * 0, lambda n, i, f: n * 0).passed
    assert outcome(lambda n, i, f: n[1:], lambda n, i, f: n).detail == "6 of 6 numbers are wrong"


def test_a_kernel_that_is_missing_fails_with_its_message():
    def missing(n, i, f):
        raise NotImplementedError("no kernel for this\nand a long story")

    assert outcome(missing, lambda n, i, f: n) == module.SelfTestOutcome("it", False, "no kernel for this")


@pytest.mark.parametrize("device", ["meta", "privateuseone"])
def test_a_device_without_values_fails_and_does_not_raise(device):
    test = self_test(device)
    assert not test.passed
    assert len(test.failures) == len(module.OPERATIONS)
    assert all(each.detail for each in test.failures)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.accelerator.is_available(), reason="no accelerator here")
def test_the_accelerator_passes():
    assert self_test(torch.accelerator.current_accelerator()).passed
