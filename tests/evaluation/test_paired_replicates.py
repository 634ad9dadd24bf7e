"""Any metric of two models on the same samples is compared in pairs, also on slices and without per-sample values."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from sklearn.metrics import matthews_corrcoef, roc_auc_score
from torch.utils.data import DataLoader, TensorDataset

from assay import AUROC, Accuracy, evaluate
from assay.evaluation.observe import bootstrap_groups
from assay.metrics import MatthewsCorrCoef
from assay.report import Report, compare, gate

N = 600
METRICS = {"acc": Accuracy(), "auroc": AUROC(), "mcc": MatthewsCorrCoef()}
GENERATOR = torch.Generator().manual_seed(0)
Y = torch.randint(2, (N,), generator=GENERATOR)
SHARED = torch.randn(N, generator=GENERATOR)
LANGUAGE = torch.arange(N) % 2


def scores(skill, seed):
    own = torch.randn(N, generator=torch.Generator().manual_seed(seed))
    return torch.sigmoid(skill * (2 * Y - 1) + SHARED + 0.3 * own)


def run(skill, noise, target=Y, batch_size=64, metrics=METRICS, data=None, **more):
    data = TensorDataset(scores(skill, noise), target, LANGUAGE) if data is None else data
    loader = DataLoader(data, batch_size=batch_size, shuffle=batch_size != 64)
    options = {
        "inputs": 0,
        "target": 1,
        "slices": {"language": 2},
        "device": "cpu",
        "title": f"{skill}",
        "n_resamples": 100,
    } | more
    return evaluate(lambda x: x, loader, metrics, **options)


@pytest.fixture(scope="module")
def reports():
    return run(1.0, 1, n_resamples=400), run(1.2, 2, n_resamples=400)


def error(delta):
    """The standard error behind an interval, taking Student's quantile as 2."""
    return (delta.upper - delta.lower) / 4


def test_every_metric_is_paired_on_all_samples_and_on_slices(reports):
    found = compare(*reports)
    assert len(found.deltas) == 9
    assert all(delta.paired and delta.p is not None for delta in found.deltas)
    assert found.delta("auroc").method.startswith("paired bootstrap: 400 draws of 125 groups")
    assert found.delta("mcc", slice="language = 1").method.startswith("paired bootstrap: 100 draws of 32 groups")
    assert found.delta("acc").method.startswith("McNemar")  # what samples contribute is more exact


@pytest.mark.parametrize(
    ("name", "of"), [("auroc", roc_auc_score), ("mcc", lambda y, p: matthews_corrcoef(y, p > 0.5))]
)
def test_the_error_is_that_of_resampled_samples(reports, name, of):
    y, (a, b), rng = Y.numpy(), (scores(1.0, 1).numpy(), scores(1.2, 2).numpy()), np.random.default_rng(0)
    rows = rng.integers(N, size=(200, N))
    expected = np.std([of(y[row], b[row]) - of(y[row], a[row]) for row in rows])
    assert error(compare(*reports).delta(name)) == pytest.approx(expected, rel=0.25)
    unpaired = [next(v for v in r.sections[0].values if v.name == name) for r in reports]
    assert expected < 0.7 * np.hypot(*((each.upper - each.lower) / 4 for each in unpaired))


def test_the_replicates_do_not_depend_on_the_split(reports):
    again = run(1.0, 1, batch_size=7, n_resamples=400)
    assert again.sections[0].values == reports[0].sections[0].values
    assert again.sections[0].slices == reports[0].sections[0].slices
    assert Report.from_json(reports[0].to_json()) == reports[0]


def test_means_of_more_samples_than_are_kept_are_paired(reports):
    by_samples = compare(*reports).delta("acc")
    without = compare(run(1.0, 1, keep_samples=False), run(1.2, 2, keep_samples=False))
    too_many = compare(run(1.0, 1, max_kept_samples=N - 1), run(1.2, 2, max_kept_samples=N - 1))
    for found in (without, too_many):
        assert all(delta.paired for delta in found.deltas)
        assert error(found.delta("acc")) == pytest.approx(error(by_samples), rel=0.25)


def test_a_stream_with_ids_is_paired_whatever_it_holds():
    def stream(skill, seed):
        rows = zip(
            scores(skill, seed).split(50), Y.split(50), LANGUAGE.split(50), torch.arange(N).split(50), strict=True
        )
        return [dict(zip(("x", "y", "language", "id"), row, strict=True)) for row in rows]

    options = {"inputs": "x", "slices": ["language"], "ids": "id", "device": "cpu", "max_kept_samples": N - 1}
    found = [evaluate(lambda x: x, stream(*each), METRICS, **options) for each in ((1.0, 1), (1.2, 2))]
    assert all(delta.paired for delta in compare(*found).deltas)


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"seed": 1}, "with the seeds 0 and 1"),
        ({"target": 1 - Y}, "other targets"),
        ({"data": TensorDataset(scores(1.2, 2)[:-2], Y[:-2], LANGUAGE[:-2])}, "other samples: 600 and 598"),
        ({"confidence_level": None}, "not tested"),
    ],
)
def test_what_was_not_resampled_alike_is_not_paired_and_says_why(reports, other, why):
    for delta in compare(reports[0], run(1.2, 2, **other)).deltas:
        if delta.metric != "acc":
            assert not delta.paired
            assert why.replace("600 and 598", "300 and 299" if delta.slice else "600 and 598") in delta.note


def test_other_groups_are_not_paired(reports):
    (section,) = reports[1].sections
    fewer = dataclasses.replace(section, resampling=dataclasses.replace(section.resampling, groups=200))
    delta = compare(reports[0], dataclasses.replace(reports[1], sections=[fewer])).delta("mcc")
    assert not delta.paired
    assert "128 and 200 groups" in delta.note


def test_equal_predictions_differ_in_no_replicate():
    """Of halved logits the ranking is the same, and so is the AUROC of every replicate."""
    metrics = {"auroc": AUROC()}
    halved = TensorDataset((scores(1.0, 1) - 0.5) / 2 + 0.5, Y, LANGUAGE)
    delta = compare(run(1.0, 1, metrics=metrics), run(1.0, 1, data=halved, metrics=metrics)).delta("auroc")
    assert (delta.difference, delta.p, delta.paired, delta.verdict) == (0, 1, True, "no evidence")


def test_a_gate_takes_the_paired_interval(reports):
    """A drop of a small part of the standard error of either value: only pairs show that it is none."""
    rules = {"max-drop": {"auroc": 0.0}}
    assert gate(run(1.12, 1), rules, reports[0]).outcome == "pass"
    assert gate(run(1.12, 1, seed=1), rules, reports[0]).outcome == "not enough evidence"


def test_slices_that_take_too_much_are_not_resampled(monkeypatch):
    monkeypatch.setattr(bootstrap_groups, "MOST_BYTES", 1 << 16)
    (section,) = run(1.0, 1).sections
    assert section.resampling is not None
    assert [each.resampling for each in section.slices] == [None, None]
