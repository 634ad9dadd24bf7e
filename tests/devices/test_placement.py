"""The second device is ``meta``, which every machine has, or a fake one where an index or a dtype matters."""

from __future__ import annotations

import inspect
import warnings
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass
from types import MappingProxyType

import pytest
import torch
from torch._subclasses import FakeTensorMode

from assay.devices import bring_together, move, to_host
from assay.devices import placement as module
from assay.devices.placement import can_read
from assay.errors import DeviceError, PlacementWarning

Pair = namedtuple("Pair", "first second")


@dataclass(frozen=True)
class Batch:
    image: torch.Tensor
    name: str


@pytest.fixture(autouse=True)
def forget_warnings(monkeypatch):
    monkeypatch.setattr(module, "_warned", set())


def line():
    return inspect.currentframe().f_back.f_lineno


def test_tensors_that_are_together_come_back_as_they_are():
    preds, target = torch.zeros(3), torch.ones(3)
    together = bring_together(preds=preds, target=target, weights=None)
    assert together["preds"] is preds
    assert together["target"] is target
    assert together["weights"] is None


def test_being_together_costs_no_call_of_torch(count_ops):
    preds, target = torch.zeros(3), torch.ones(3)
    with count_ops() as counts:
        bring_together(preds=preds, target=target)
    assert counts.all_calls == 0


def test_they_meet_where_the_first_is_and_the_warning_names_argument_devices_and_line():
    preds, target = torch.zeros(3, device="meta"), torch.ones(3)
    with pytest.warns(PlacementWarning) as caught:
        together, here = bring_together(preds=preds, target=target), line()
    assert together["target"].device.type == "meta"
    assert together["preds"] is preds
    assert len(caught) == 1
    assert (caught[0].filename, caught[0].lineno) == (__file__, here)
    assert str(caught[0].message) == (
        f"target at {__file__}:{here}: got a tensor on cpu, expected one on meta, where the other arguments are. "
        "It has been moved; to save the copy each time, call target.to('meta') yourself, "
        "or pass strict=True to make this an error."
    )


def test_it_warns_once_a_line():
    preds, target = torch.zeros(3, device="meta"), torch.ones(3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            bring_together(preds=preds, target=target)
        bring_together(preds=preds, target=target)
    assert len(caught) == 2


def test_it_warns_for_each_argument_that_is_elsewhere():
    there = torch.zeros(3, device="meta")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bring_together(preds=there, target=torch.ones(3), weights=torch.ones(3))
    assert [str(each.message).split()[0] for each in caught] == ["target", "weights"]


def test_a_decorator_of_torch_does_not_hide_the_caller():
    @torch.no_grad()
    def update():
        bring_together(preds=torch.zeros(3, device="meta"), target=torch.ones(3))

    with pytest.warns(PlacementWarning) as caught:
        update()
    assert caught[0].filename == __file__


def test_strict_raises_instead_of_moving():
    preds, target = torch.zeros(3, device="meta"), torch.ones(3)
    for _ in range(2):  # not once a line: an error each time
        with pytest.raises(DeviceError) as caught:
            bring_together(strict=True, preds=preds, target=target)
    assert "target at " in str(caught.value)
    assert "got a tensor on cpu, expected one on meta, where the other arguments are." in str(caught.value)
    assert str(caught.value).endswith('Call target.to("meta") once before the loop.')


def test_a_number_on_the_cpu_is_moved_without_a_word():
    together = bring_together(strict=True, preds=torch.zeros(3, device="meta"), threshold=torch.tensor(0.5))
    assert together["threshold"].device.type == "meta"


def test_the_meeting_place_can_be_given():
    with pytest.warns(PlacementWarning, match="preds at"):
        together = bring_together(to=torch.device("meta"), preds=torch.zeros(3))
    assert together["preds"].device.type == "meta"


def test_devices_that_differ_in_the_index_are_different():
    with FakeTensorMode():
        preds, target = torch.zeros(3, device="cuda:1"), torch.zeros(3, device="cuda:0")
        with pytest.warns(PlacementWarning, match="a tensor on cuda:0, expected one on cuda:1"):
            together = bring_together(preds=preds, target=target)
    assert together["target"].device == torch.device("cuda:1")


def test_float64_that_the_first_device_lacks_brings_all_to_the_cpu():
    with FakeTensorMode():
        preds, target = torch.zeros(3, device="mps"), torch.zeros(3, dtype=torch.float64)
        with pytest.warns(PlacementWarning, match="preds at .* got a tensor on mps(:0)?, expected one on cpu"):
            together = bring_together(preds=preds, target=target)
    assert {tensor.device.type for tensor in together.values()} == {"cpu"}
    assert together["target"].dtype == torch.float64


def test_move_goes_through_nested_batches_and_keeps_types():
    tree = {
        "list": [torch.zeros(2), "text", None],
        "pair": Pair(torch.zeros(1), (torch.zeros(1), 3)),
        "batch": Batch(torch.zeros(3), "cat"),
        "ordered": OrderedDict(a=torch.zeros(1)),
        "default": defaultdict(list, a=torch.zeros(1)),
        "proxy": MappingProxyType({"a": torch.zeros(1)}),
    }
    moved = move(tree, "meta")
    assert moved["list"][0].is_meta
    assert moved["list"][1:] == ["text", None]
    assert moved["pair"].second[0].is_meta
    assert moved["pair"].second[1] == 3
    assert moved["batch"].image.is_meta
    assert moved["batch"].name == "cat"
    assert moved["default"].default_factory is list
    assert all(moved[key]["a"].is_meta for key in ("ordered", "default", "proxy"))
    for key in ("list", "pair", "batch", "ordered", "default"):
        assert type(moved[key]) is type(tree[key])
    assert tree["list"][0].device.type == "cpu"
    assert tree["batch"].image.device.type == "cpu"
    assert tree["ordered"]["a"].device.type == "cpu"


def test_moving_to_where_it_is_copies_nothing():
    tensor = torch.zeros(2)
    assert move([tensor], "cpu")[0] is tensor


def test_reading_on_the_host_drops_the_graph_and_copies_nothing_there():
    tensor = torch.zeros(2, requires_grad=True)
    read = to_host(tensor)
    assert not read.requires_grad
    assert read.data_ptr() == tensor.data_ptr()


class Recorder:
    """Stands for a tensor on an Apple GPU, and remembers what was called on it."""

    device = torch.device("mps")

    def __init__(self):
        self.calls = []

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append((name, *arguments))
            return self

        return call


def test_what_comes_to_the_host_is_made_contiguous_on_the_device_first():
    assert to_host(Recorder()).calls == [("detach",), ("contiguous",), ("to", "cpu")]


def test_only_ordinary_tensors_in_host_memory_are_read_without_waiting(count_ops):
    assert can_read(torch.ones(2))
    assert not can_read(torch.ones(2, device="meta"))
    assert not can_read(torch.ones(2, requires_grad=True))
    with count_ops():
        assert not can_read(torch.ones(2))
