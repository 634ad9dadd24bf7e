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
        x, label = torch.ones(1, 3, device=gpu.device).half(), torch.tensor([1], device=gpu.device)
        with pytest.raises(NotImplementedError, match=r"assay: pretend cuda:0 cannot run aten::multi_margin.* CPU's"):
            torch.nn.functional.multi_margin_loss(x, label)
        assert [event.kind for event in gpu.recorder.of("unsupported")] == ["unsupported"]


def test_integers_have_a_histogram_that_the_cpu_lacks(there):
    x = torch.tensor([1, 2, 2], device=there.device)
    counts = torch.histc(x, bins=3, min=0, max=3)
    assert (counts.tolist(), counts.dtype) == ([0, 1, 2], torch.int64)


def test_indices_and_numbers_of_the_device_are_put_into_a_tensor_of_the_host(there):
    """``_index_put_impl_`` brings them; reading with such an index is refused."""
    x, index, mask = torch.zeros(3), torch.tensor([1]), torch.tensor([True, False, False])
    x[index.to(there.device)] = 1.0
    there.events.clear()
    x[mask.to(there.device)] = torch.tensor(2.0, device=there.device)
    assert x.tolist() == [2.0, 1.0, 0.0]
    assert [event.target for event in there.recorder.of("copy")][-1] == "cpu"
    assert "aten::_index_put_impl_" in {event.operator for event in there.syncs}
    with pytest.raises(RuntimeError, match="indices should be either on cpu"):
        x[index.to(there.device)]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x[index.repeat(2).to(there.device)] = torch.ones(2, device=there.device)


def test_a_mask_of_the_device_is_filled_with_one_number_of_the_host(there):
    x = torch.zeros(2, device=there.device)
    mask = torch.tensor([True, False], device=there.device)
    x.index_put_((mask,), torch.tensor([3.0]))
    assert x.tolist() == [3.0, 0.0]
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        x[torch.tensor([0, 1], device=there.device)] = torch.tensor([3.0, 4.0])


def test_mps_does_not_add_a_multiple_of_a_wider_float_in_place(mps):
    """pytorch/pytorch#178709; without ``alpha``, or out of place, it does."""
    x, wide = torch.zeros(2, dtype=torch.float16, device=mps.device), torch.ones(2, device=mps.device)
    with pytest.raises(RuntimeError, match="Failed to create function state object"):
        x.add_(wide, alpha=0.5)
    assert x.add_(wide).tolist() == [1.0, 1.0]
    assert x.add(wide, alpha=2).tolist() == [3.0, 3.0]
    assert [event.kind for event in mps.recorder.of("dtype")] == ["dtype"]
