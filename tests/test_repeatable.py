"""What a test draws does not depend on the tests before it."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

RANDOM = random.Random(3)
RNG = np.random.default_rng(3)
GENERATOR = torch.Generator().manual_seed(3)


@pytest.mark.parametrize("turn", [0, 1])
def test_a_second_test_draws_what_the_first_drew(turn):
    assert RANDOM.random() == random.Random(3).random()
    assert RNG.random() == np.random.default_rng(3).random()
    assert torch.rand((), generator=GENERATOR) == torch.rand((), generator=torch.Generator().manual_seed(3))
    assert random.random() == random.Random(0).random()
    assert np.random.random() == np.random.RandomState(0).random()
    assert torch.rand(()) == torch.rand((), generator=torch.Generator().manual_seed(0))
