"""The compiled ratios of signals against the same operations in torch, bit by bit."""

from __future__ import annotations

import math
from itertools import product

import pytest
import torch

from assay.native.library import MISSING, library
from assay.tally.rows.audio_terms import EnergyRatio, PermutedRatio

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

TERMS = [EnergyRatio(invariant, mean) for invariant, mean in product((False, True), repeat=2)]


def pairs(kind, *shape):
    generator = torch.Generator().manual_seed(0)
    target, noise = torch.randn(2, *shape, generator=generator)
    preds = target + noise / 100
    match kind:
        case "offset":
            return preds + 1e4, target + 1e4
        case "large":
            return preds * 1e37, target * 1e37
        case "denormal":
            return preds * 1e-40, target * 1e-40
        case "invalid":
            preds[0], target[1] = 0, 3
            preds[2].view(-1)[-1], target[3].view(-1)[0] = math.nan, -math.inf
            preds[4] = 2 * target[4]
            preds[5] = target[5]
    return preds, target


def assert_same(term, preds, target):
    compiled, generic = (term.measure(preds, target, flag) for flag in (True, False))
    assert torch.equal(compiled[1], generic[1])
    assert torch.equal(*(values.nan_to_num(math.pi, math.inf, -math.inf) for values in (compiled[0], generic[0])))


@pytest.mark.parametrize("kind", ["plain", "offset", "large", "denormal", "invalid"])
@pytest.mark.parametrize("layout", ["signals", "sources"])
@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_ratios_have_the_bits_of_the_generic_form(term, layout, kind):
    for size in (1, 2, 3, 33, 1000):
        shape = (6, size) if layout == "signals" else (6, 3, size)
        assert_same(EnergyRatio(term.scale_invariant, term.zero_mean, layout), *pairs(kind, *shape))


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_permutations_have_the_bits_of_the_generic_form(term):
    for sources in (1, 4):
        assert_same(PermutedRatio(term), *pairs("plain", 3, sources, 77))
