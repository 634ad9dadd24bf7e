"""What a pretend device notices: what synchronizes, what is copied, and on which line of Python."""

from __future__ import annotations

import sys
import threading

import pytest
import torch
from torch import nn

from assay.pretend.events import KINDS
from thinning import every_third

WAITS = {  # name: what is done, and the operator that waits
    "item": (lambda x: x[0].item(), "aten::_local_scalar_dense"),
    "tolist": (lambda x: x.tolist(), "aten::copy_"),
    "cpu": (lambda x: x.cpu(), "aten::copy_"),
    "to the cpu": (lambda x: x.to("cpu"), "aten::copy_"),
    "copy_ to the cpu": (lambda x: torch.zeros(4).copy_(x), "aten::copy_"),
    "bool": (lambda x: bool(x.sum() > 1), "aten::_local_scalar_dense"),
    "if": (lambda x: 1 if x[0] > 0 else 2, "aten::_local_scalar_dense"),
    "int": (lambda x: int(x[1]), "aten::_local_scalar_dense"),
    "float": (lambda x: float(x[1]), "aten::_local_scalar_dense"),
    "equal": (lambda x: torch.equal(x, x.clone()), "aten::equal"),
    "nonzero": (lambda x: x.nonzero(), "aten::nonzero"),
    "where with one argument": (lambda x: torch.where(x > 1), "aten::nonzero"),
    "mask": (lambda x: x[x > 1], "aten::index.Tensor"),
    "masked_select": (lambda x: x.masked_select(x > 1), "aten::masked_select"),
    "unique": (lambda x: x.unique(), "aten::_unique2"),
    "unique_consecutive": (lambda x: x.unique_consecutive(), "aten::unique_consecutive"),
    "bincount": (lambda x: x.long().bincount(), "aten::bincount"),
    "repeat_interleave": (lambda x: x.repeat_interleave(x.long()), "aten::repeat_interleave.Tensor"),
    "one_hot without classes": (lambda x: nn.functional.one_hot(x.long()), "aten::_local_scalar_dense"),
}
GOES_ON = {
    "arithmetic": lambda x: (x + 1).mul_(2).div(3).clamp(0, 1),
    "comparison": lambda x: (x > 1).logical_and(x < 3),
    "reductions": lambda x: (x.sum(), x.mean(), x.max(), x.argmax(), x.std(), x.norm()),
    "views": lambda x: x.view(2, 2).t()[0].unsqueeze(0),
    "slices": lambda x: x[1:3].add_(1),
    "a number written by slice": lambda x: x.__setitem__(slice(1, 3), 5.0),
    "where": lambda x: torch.where(x > 1, x, 0.0),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0.0),
    "gather": lambda x: x.gather(0, x.long()),
    "index of the device": lambda x: x[x.long()],
    "scatter_add": lambda x: x.scatter_add(0, x.long(), x),
    "sort": lambda x: (x.sort(), x.topk(2), x.cumsum(0)),
    "factories": lambda x: (
        torch.zeros_like(x),
        torch.arange(3, device=x.device),
        torch.full((2,), 1.0, device=x.device),
    ),
    "random": lambda x: torch.rand(3, device=x.device),
    "matmul": lambda x: x.view(2, 2) @ x.view(2, 2),
    "concatenation": lambda x: (torch.cat([x, x]), torch.stack([x, x])),
    "one_hot with classes": lambda x: torch.zeros(4, 4, device=x.device).scatter_(1, x.long().unsqueeze(1), 1),
    "a number without dimensions from the cpu": lambda x: x * torch.tensor(2.0),
    "another dtype": lambda x: x.to(torch.int32).float(),
    "clone and detach": lambda x: x.clone().detach(),
    "module": lambda x: nn.functional.softmax(nn.functional.linear(x, x.view(1, 4)), 0),
    "shape": lambda x: (x.shape, x.numel(), x.device, x.dtype, x.is_contiguous(), len(x)),
}


def four(there) -> torch.Tensor:
    """0, 1, 2, 3 on the device; what making them took is forgotten."""
    x = torch.arange(4.0, device=there.device)
    there.events.clear()
    return x


@every_third
@pytest.mark.parametrize("name", WAITS)
def test_the_host_waits_and_the_line_is_noted(there, name: str):
    call, operator = WAITS[name]
    x = four(there)
    call(x)
    (event,) = there.syncs
    assert event.operator == operator
    assert event.device == str(there.device)
    assert event.where is not None
    assert (event.where.file, event.where.line) == (__file__, call.__code__.co_firstlineno)
    assert event.why


@every_third
@pytest.mark.parametrize("name", GOES_ON)
def test_the_host_goes_on(there, name: str):
    x = four(there)
    GOES_ON[name](x)
    assert [str(event) for event in there.syncs] == []


def test_each_wait_is_counted(there):
    x = four(there)
    for _ in range(3):
        x.sum().item()
    first = sys._getframe().f_lineno
    x[0].item()
    assert len(there.syncs) == 4
    assert [event.where.line for event in there.syncs] == [first - 1] * 3 + [first + 1]


def test_the_lines_lead_from_the_innermost_outwards(there):
    def inner(x: torch.Tensor) -> float:
        return x.item()

    inner(four(there)[0])
    (event,) = there.syncs
    assert [frame.function.split(".")[-1] for frame in event.stack[:2]] == [
        "inner",
        "test_the_lines_lead_from_the_innermost_outwards",
    ]
    assert all("/torch/" not in frame.file for frame in event.stack)


def test_a_line_inside_a_module_is_the_users(there):
    class Reads(nn.Module):
        def forward(self, x: torch.Tensor) -> float:
            return x.item()

    Reads()(four(there)[0])
    assert there.syncs[0].where.function.endswith("Reads.forward")


def test_a_thread_is_seen(there):
    x = four(there)
    thread = threading.Thread(target=lambda: x[0].item())
    thread.start()
    thread.join()
    assert [event.where.file for event in there.syncs] == [__file__]


def test_pageable_memory_to_the_device_makes_the_host_wait(indexed):
    torch.ones(3).to(indexed.device)
    (copied,) = indexed.recorder.of("copy")
    assert (copied.source, copied.target, copied.elements) == ("cpu", str(indexed.device), 3)
    assert (copied.non_blocking, copied.pinned) == (False, False)
    assert len(indexed.syncs) == 1


def test_python_numbers_to_the_device_are_pageable_memory(indexed):
    torch.tensor([1.0, 2.0], device=indexed.device)
    assert len(indexed.recorder.of("copy")) == 1
    assert len(indexed.syncs) == 1


def test_pinned_memory_without_blocking_lets_the_host_go_on(cuda):
    pinned = torch.ones(3).pin_memory()
    cuda.events.clear()
    moved = pinned.to("cuda:1", non_blocking=True)
    (copied,) = cuda.recorder.of("copy")
    assert (copied.non_blocking, copied.pinned) == (True, True)
    assert cuda.syncs == []
    moved.to("cpu", non_blocking=True)
    back = cuda.recorder.of("copy")[-1]
    assert (back.source, back.target, back.non_blocking) == ("cuda:1", "cpu", True)


def test_copies_between_devices_are_noted_and_do_not_wait(cuda):
    x = torch.ones(3, device="cuda:1")
    cuda.events.clear()
    x.to("cuda:0")
    (copied,) = cuda.recorder.of("copy")
    assert (copied.source, copied.target) == ("cuda:1", "cuda:0")
    assert cuda.syncs == []


def test_copies_on_one_device_are_not_noted(there):
    x = four(there)
    x.clone()
    torch.zeros(4, device=there.device).copy_(x)
    x.to(torch.int32)
    assert there.recorder.of("copy") == []


def test_the_method_cuda_is_seen_to_move_to_the_first_device(cuda):
    x = torch.ones(3, device="cuda:1")
    cuda.events.clear()
    x.cuda()
    (copied,) = cuda.recorder.of("copy")
    assert (copied.source, copied.target) == ("cuda:1", "cuda:0")
    assert copied.where.file == __file__


def test_an_index_on_the_host_is_copied(there):
    x = four(there)
    x[torch.tensor([0, 2])]  # AdvancedIndex in aten/src/ATen/native/TensorAdvancedIndexing.cpp moves it with .to()
    assert [event.source for event in there.recorder.of("copy")] == ["cpu"]


def test_a_mask_on_the_host_is_copied_as_positions(cuda):
    x = four(cuda)
    x[torch.tensor([True, False, True, True])]
    (copied,) = cuda.recorder.of("copy")
    assert (copied.source, copied.target) == ("cpu", "cuda:1")
    assert [event.operator for event in cuda.syncs] == ["aten::copy_"]


def test_a_number_written_to_one_element_of_cuda_is_copied(cuda):
    x = four(cuda)
    x[0] = 5.0  # a 0-dimensional CPU tensor for CUDA (torch/csrc/autograd/python_variable_indexing.cpp), then copy_
    assert [event.operator for event in cuda.syncs] == ["aten::copy_"]


def test_a_number_written_by_mask_to_cuda_does_not_wait(cuda):
    x = four(cuda)
    x[x > 1] = 0.0  # canDispatchToMaskedFill in aten/src/ATen/native/TensorAdvancedIndexingUtils.h
    assert x.sum().item() == 1
    assert [event.operator for event in cuda.syncs] == ["aten::_local_scalar_dense"]


def test_a_tensor_written_by_mask_waits(there):
    x = four(there)
    x[x > 1] = torch.zeros(2, device=there.device)
    assert len(there.syncs) == 1


def test_what_is_quiet_is_not_noted(there):
    x = four(there)
    with there.recorder.quiet():
        x.tolist()
    assert there.events == []


def test_printing_waits(there):
    x = four(there)
    repr(x)
    assert there.syncs


def test_nothing_is_noted_of_the_cpu(there):
    torch.ones(3).sum().item()
    torch.ones(3).nonzero()
    assert there.events == []


def test_every_event_has_a_known_kind(there):
    x = four(there)
    x.cpu()
    with pytest.raises(RuntimeError, match="same device"):
        x + torch.ones(4)
    assert {event.kind for event in there.events} <= KINDS.keys()


def test_a_training_step_does_not_wait(there):
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).to(there.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    x, y = torch.rand(6, 4, device=there.device), torch.randint(0, 2, (6,), device=there.device)
    there.events.clear()
    for _ in range(2):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    assert [str(event) for event in there.syncs] == []


def test_a_histogram_waits_for_its_range_and_not_where_its_edges_are_given(mps):
    values, edges = torch.tensor([0.1, 0.6], device="mps"), torch.tensor([0.0, 0.5, 1.0], device="mps")
    counts, _ = torch.histogram(values, edges)
    torch.histogram(values, 2)
    assert [event.operator for event in mps.syncs if "histogram" in event.operator] == ["aten::histogram.bin_ct"]
    assert counts.tolist() == [1.0, 1.0]
