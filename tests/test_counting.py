"""The counter itself: a synchronisation that it missed would let every other test pass."""

from __future__ import annotations

import pytest
import torch

SYNCHRONISING = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.any()),
    "nonzero": lambda x: x.nonzero(),
    "boolean mask": lambda x: x[x > 1],
    "assignment by a boolean mask": lambda x: x.__setitem__(x > 1, torch.tensor([0, 0, 0])),
    "masked_select": lambda x: x.masked_select(x > 1),
    "unique": lambda x: x.unique(),
    "bincount": lambda x: x.bincount(),
    "equal": lambda x: torch.equal(x, x),
    "repeat_interleave": lambda x: x.repeat_interleave(x),
}
QUIET = {
    "sum": lambda x: x.sum(),
    "where": lambda x: torch.where(x > 1, x, 0),
    "gather": lambda x: x[torch.tensor([0, 1])],
    "index_add_": lambda x: x.index_add_(0, torch.tensor([0]), torch.tensor([1])),
    "repeat_interleave by a number": lambda x: x.repeat_interleave(2),
    "masked_fill by a number": lambda x: x.masked_fill(x > 1, 0),
}


@pytest.mark.parametrize("name", SYNCHRONISING)
def test_reading_the_device_is_counted(count_ops, name):
    with count_ops() as counts:
        SYNCHRONISING[name](torch.arange(5))
    assert counts.syncs, counts.ops


@pytest.mark.parametrize("name", QUIET)
def test_what_reads_nothing_is_not(count_ops, name):
    with count_ops() as counts:
        QUIET[name](torch.arange(5))
    assert counts.syncs == []


def test_views_are_no_calls(count_ops):
    x = torch.zeros(4, 3)
    with count_ops() as counts:
        x.view(3, 4).t().unsqueeze(0)[0].sum()
    assert counts.calls == 1
    assert counts.all_calls > 1


def test_copies_between_devices_are_counted(count_ops):
    x, elsewhere = torch.zeros(3), torch.zeros(3, device="meta")
    with count_ops() as counts:
        x.to("meta")
        x.to(torch.float64)
        elsewhere.copy_(x)
    assert counts.copies == ["_to_copy", "copy_"]
