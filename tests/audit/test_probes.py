from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from assay.audit import Case
from assay.audit.cases.probes import _operations, _two_processes, collectives, counters
from assay.pretend import pretend


class Counter:
    """Adds what an update is given to a state of some dtype."""

    def __init__(self, dtype=torch.float32, keep=None):
        self.total = torch.zeros(2, dtype=dtype)
        self.keep = keep

    def update(self, values):
        self.total = self.total + values.sum(0) if self.keep is None else self.keep(self.total, values)

    def compute(self):
        return self.total


def batches(*values):
    return tuple((torch.as_tensor(value, dtype=torch.float32),) for value in values)


WHOLE = batches([[1, 0], [1, 2]], [[1, 1]], [[0, 3]])


def found(build, given=WHOLE):
    return [what for _, _, what in counters(Case("Counter", build), given)]


@pytest.mark.parametrize(
    ("dtype", "largest"), [(torch.float32, "16,777,216"), (torch.bfloat16, "256"), (torch.float16, "2,048")]
)
def test_a_counter_that_stands_still_is_shown_to(dtype, largest):
    (what,) = found(lambda: Counter(dtype, lambda total, values: total + values.sum(0).to(dtype)))
    name = str(dtype).removeprefix("torch.")
    assert what.startswith(
        f"The state `total` counts in {name}, which holds integers one by one up to {largest}. Set to "
    )
    assert what.endswith("it stood still when an update added 1")


@pytest.mark.parametrize("dtype", [torch.int64, torch.float64])
def test_other_dtypes_count_on(dtype):
    assert found(lambda: Counter(dtype, lambda total, values: total + values.sum(0).to(dtype))) == []


def test_an_integer_state_that_becomes_a_float_is_found():
    (what,) = found(lambda: Counter(torch.int64))
    assert "counts in float32" in what


@pytest.mark.parametrize(
    "given",
    [
        batches([[0.5, 0]], [[0.5, 1]], [[1, 1]]),  # a sum of fractions
        batches([[3, 3]], [[-1, 0]], [[1, 1]]),  # falls
        batches([[0, 0]], [[0, 0]], [[0, 0]]),  # does not move
        batches([[1, 1]]),  # one update tells nothing
    ],
)
def test_what_does_not_count_is_no_counter(given):
    assert found(Counter, given) == []


def test_a_state_that_is_set_anew_is_no_counter():
    assert found(lambda: Counter(keep=lambda total, values: values.sum(0).cumsum(0) + 16 * len(values))) == []


class Synced:
    """Hands a tensor on a device of choice to each collective."""

    def __init__(self, device):
        self.device = device

    def update(self, values):
        self.values = values

    def compute(self):
        assert dist.get_backend() in ("nccl", "xccl")
        tensor = torch.ones(3, device=self.device)
        dist.all_reduce(tensor)
        places = [torch.zeros(3, device=self.device) for _ in range(dist.get_world_size())]
        dist.all_gather(places, tensor)
        gathered = [None, None]
        dist.all_gather_object(gathered, "same")
        return tensor, places, gathered


@pytest.mark.parametrize(("device", "backend"), [("cuda:1", "nccl"), ("xpu", "xccl")])
def test_cpu_tensors_that_are_handed_over_are_found(device, backend):
    with pretend(device) as pretended:
        found = collectives(Case("Synced", lambda: None), Synced("cpu"), pretended)
        clean = collectives(Case("Synced", lambda: None), Synced(pretended.device), pretended)
    kind = pretended.type
    assert [what for _, what in found] == [
        f"all_reduce is given a CPU tensor of shape (3,); {backend} takes tensors of {kind} only",
        *[f"all_gather is given a CPU tensor of shape (3,); {backend} takes tensors of {kind} only"] * 3,
    ]
    assert [stack[0].function for stack, _ in found] == ["Synced.compute"] * 4
    assert clean == []


def test_mps_has_no_backend_of_its_own():
    with pretend("mps") as pretended:
        assert collectives(Case("Synced", lambda: None), Synced("cpu"), pretended) == []


def test_collectives_answer_as_two_processes_with_the_same_data():
    before = {name: getattr(dist, name) for name in (*_operations(lambda *_: None), "get_rank", "is_initialized")}
    with _two_processes("nccl", lambda *_: None):
        total, places, objects = Synced("cpu").compute()
        assert (dist.get_rank(), dist.get_world_size(), dist.is_initialized()) == (0, 2, True)
        joined = torch.zeros(6)
        dist.all_gather_into_tensor(joined, torch.arange(3.0))
    assert total.tolist() == [2, 2, 2]
    assert [place.tolist() for place in places] == [[2, 2, 2]] * 2
    assert objects == ["same", "same"]
    assert joined.tolist() == [0, 1, 2, 0, 1, 2]
    assert {name: getattr(dist, name) for name in before} == before
