"""pass@k against exact binomial coefficients, and bits per byte against its definition."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
import torch

from assay import evaluate
from assay.errors import ConfigError, InvalidValuesError
from assay.metrics import BitsPerByte, PassAtK
from thinning import draws


@pytest.mark.parametrize("k", [1, 2, 5, 10])
def test_pass_at_k_is_the_quotient_of_binomial_coefficients(k):
    for seed in draws(50):
        chance = random.Random(seed)
        drawn = [chance.randrange(k, 3 * k + 3) for _ in range(8)]
        passed = [chance.randrange(n + 1) for n in drawn]
        exact = sum(1 - Fraction(math.comb(n - c, k), math.comb(n, k)) for c, n in zip(passed, drawn, strict=True)) / 8
        preds, target = torch.tensor(passed), torch.tensor(drawn)
        assert float(PassAtK(k)(preds.double(), target.double())) == pytest.approx(float(exact), rel=1e-12)
        assert float(PassAtK(k)(preds, target)) == pytest.approx(float(exact), abs=1e-6)


@pytest.mark.parametrize("k", [1, 2, 5])
def test_all_pass_is_the_quotient_of_binomial_coefficients(k):
    for seed in draws(50):
        chance = random.Random(seed)
        drawn = [chance.randrange(k, 3 * k + 3) for _ in range(8)]
        passed = [chance.randrange(n + 1) for n in drawn]
        exact = sum(Fraction(math.comb(c, k), math.comb(n, k)) for c, n in zip(passed, drawn, strict=True)) / 8
        found = PassAtK(k, all_pass=True)(torch.tensor(passed).double(), torch.tensor(drawn).double())
        assert float(found) == pytest.approx(float(exact), abs=1e-12)


@pytest.mark.parametrize("all_pass", [False, True])
@pytest.mark.parametrize(("passed", "drawn"), [(5, 4), (-1, 4), (1, 1)])
def test_pass_at_k_of_impossible_numbers_raises(passed, drawn, all_pass):
    with pytest.raises(InvalidValuesError, match="k <= target"):
        PassAtK(2, all_pass=all_pass)(torch.tensor([passed]), torch.tensor([drawn]))


def test_pass_at_k_in_clusters_has_the_interval_of_their_sums():
    """Five copies of each problem as a cluster say as much as one of each."""
    passed, drawn = torch.arange(60) % 6, torch.full((60,), 5)
    metrics = {"pass": PassAtK(2), "all": PassAtK(2, all_pass=True)}

    def values(copies):
        data = torch.utils.data.TensorDataset(passed.repeat_interleave(copies), drawn.repeat_interleave(copies))
        clusters = None if copies == 1 else torch.arange(60).repeat_interleave(copies)
        report = evaluate(torch.nn.Identity(), data, metrics, device="cpu", progress=False, cluster=clusters)
        return report.sections[0].values

    for one, many in zip(values(1), values(5), strict=True):
        assert many.value == pytest.approx(one.value)
        assert many.upper - many.lower == pytest.approx(one.upper - one.lower, rel=0.05)


def test_arguments_are_checked():
    with pytest.raises(ConfigError, match="k: got 0"):
        PassAtK(0)


def test_bits_per_byte_is_its_definition():
    generator = torch.Generator().manual_seed(0)
    logs = -100 * torch.rand(30, generator=generator, dtype=torch.float64)
    length = torch.randint(1, 300, (30,), generator=generator)
    expected = -math.fsum(logs.tolist()) / math.log(2) / int(length.sum())
    assert float(BitsPerByte()(logs, length)) == pytest.approx(expected, rel=1e-14)


def test_the_probability_of_a_text_in_tokens_of_one_byte_is_its_entropy():
    text = "0123456789" * 3
    log_probability = torch.tensor([len(text) * math.log(1 / 256)], dtype=torch.float64)
    assert float(BitsPerByte()(log_probability, torch.tensor([len(text.encode())]))) == pytest.approx(8)
