"""Conditions that depend on what is written where: the same in both engines, which state them in two languages."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture
def masked(cuda):
    x = torch.ones(5, device=cuda.device)
    mask = x > 0
    cuda.recorder.events.clear()
    return x, mask, cuda


def test_one_mask_and_a_number_fill_without_waiting(masked):
    x, mask, cuda = masked
    x[mask] = -1
    x[mask] = torch.tensor(3.0)
    assert cuda.syncs == []
    assert x.tolist() == [3.0] * 5


def test_a_value_of_the_device_or_two_indices_need_positions(masked):
    x, mask, cuda = masked
    three = torch.full((), 3.0, device=x.device)
    x[mask] = three
    assert [event.operator for event in cuda.syncs] == ["aten::_index_put_impl_"]
    x.view(1, 5)[mask[:1], mask.long() * 0] = 2.0
    assert [event.operator for event in cuda.syncs] == ["aten::_index_put_impl_"] * 2


def test_on_mps_torch_puts_the_number_on_the_device_first(mps):
    x = torch.ones(5, device=mps.device)
    mask = x > 0
    mps.recorder.events.clear()
    x[mask] = -1
    assert [event.operator for event in mps.syncs] == ["aten::_index_put_impl_"]
