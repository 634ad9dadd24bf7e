from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import nn

from assay.devices.modules import evaluation_mode, on_device


def test_a_module_that_threads_evaluate_at_once_gets_back_its_own_mode_when_the_last_is_done():
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    model[1].eval()
    both_in, first_out = Barrier(2, timeout=20), Barrier(2, timeout=20)

    def block(waits):
        with evaluation_mode(model):
            both_in.wait()
            if waits:
                first_out.wait()
                assert not model.training
        if not waits:
            first_out.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(block, (False, True)))
    assert [each.training for each in model.modules()] == [True, True, False]


class Moves(nn.Linear):
    """Notes where it is moved to; of a device without memory nothing comes back."""

    moves: tuple[str, ...] = ()

    def to(self, device):
        self.moves = (*self.moves, str(device))
        return self if device.type == "cpu" else super().to(device)


def test_a_module_that_threads_move_goes_back_when_the_last_is_done():
    model = Moves(2, 2)
    both_in, first_out = Barrier(2, timeout=20), Barrier(2, timeout=20)

    def block(waits):
        with on_device(model, torch.device("meta")):
            both_in.wait()
            if waits:
                first_out.wait()
                assert "cpu" not in model.moves
        if not waits:
            first_out.wait()

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(block, (False, True)))
    assert model.moves.count("cpu") == 1


def test_the_mode_comes_back_after_an_error():
    model = nn.Dropout()
    with pytest.raises(ZeroDivisionError), evaluation_mode(model), evaluation_mode(model):
        1 / 0  # noqa: B018
    assert model.training
