"""Evaluations that end as soon as their rules are decided."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, evaluate
from assay.errors import ConfigError
from assay.report import Report, StopWhen, compare, gate
from assay.stats.betting import betting_interval, clustered_betting_interval
from thinning import draws

N = 2000


def data(share: float, seed: int = 0, n: int = N) -> TensorDataset:
    """Sorted, so that the first samples are all wrong: order must not matter."""
    rng = np.random.default_rng(seed)
    target = torch.from_numpy(rng.integers(2, size=n))
    right = torch.arange(n) >= round((1 - share) * n)
    preds = torch.where(right, target, 1 - target)
    return TensorDataset(torch.nn.functional.one_hot(preds, 2).float(), target)


def run(dataset, stop_when=None, metrics=None, **more) -> Report:
    metrics = {"accuracy": Accuracy(num_classes=2)} if metrics is None else metrics
    return evaluate(torch.nn.Identity(), dataset, metrics, device="cpu", stop_when=stop_when, progress=False, **more)


def accuracy(report: Report):
    return report.sections[0].values[0]


@pytest.mark.parametrize(("bound", "outcome"), [(0.8, "pass"), (0.97, "fail")])
def test_a_run_ends_when_its_rule_is_decided(bound, outcome):
    report = run(data(0.9), {"min": {"accuracy": bound}})
    count = len(report.sections[0].samples)
    assert count < N / 2
    assert f"of {N:,} samples in random order" in report.notes[-1]
    assert f": {outcome}." in report.notes[-1]
    assert report.notes[0] == f"Every sample once: {count} expected, {count} counted, 0 duplicated, 0 missed."
    value, right = accuracy(report), report.sections[0].samples.column("correct")
    assert abs(value.value - 0.9) < 0.1
    assert (value.lower, value.upper) == betting_interval(right.astype(float), 0, 1)
    assert gate(report, {"min": {"accuracy": bound}}, sequential=True).outcome == outcome
    again = run(data(0.9), {"min": {"accuracy": bound}})
    assert again.sections[0].samples.ids.values.tolist() == report.sections[0].samples.ids.values.tolist()


def test_a_rule_that_is_not_decided_counts_every_sample():
    report = run(data(0.9, n=300), {"min": {"accuracy": 0.9}})
    assert len(report.sections[0].samples) == 300
    assert report.notes[-1].startswith("Not decided after 300 of 300 samples")
    assert accuracy(report).lower == accuracy(run(data(0.9, n=300))).lower
    assert not report.sections[0].stopped


def test_a_change_is_judged_on_the_samples_of_the_baseline(tmp_path):
    main = run(data(0.9))
    main.save(tmp_path / "main.json")
    rule = StopWhen({"max-drop": {"accuracy": 0.05}}, tmp_path / "main.json")
    report = run(DataLoader(data(0.9), batch_size=50), rule)
    assert len(report.sections[0].samples) < N / 4
    assert gate(report, {"max-drop": {"accuracy": 0.05}}, main, sequential=True).outcome == "pass"


def test_what_one_look_says_is_not_said_of_a_run_that_ended_early(tmp_path):
    metrics = {"accuracy": Accuracy(num_classes=2), "auc": AUROC(num_classes=2)}
    report = run(data(0.9), {"min": {"accuracy": 0.8}}, metrics, slices={"class": 1})
    report = Report.load(report.save(tmp_path / "report.json"))
    auc = report.sections[0].values[1]
    assert (auc.lower, auc.upper, auc.replicates) == (None, None, None)
    assert auc.note.startswith("no interval: the run ended by what it showed")
    in_slice = report.sections[0].slices[0]
    assert in_slice.values[0].note.startswith("betting interval")
    assert in_slice.values[1].lower is None
    with pytest.raises(ConfigError, match="ended early"):
        gate(report, {"min": {"accuracy": 0.8}})
    assert any("do not hold their level" in note for note in compare(report, report).notes)


class Stream(IterableDataset):
    def __iter__(self):
        yield from data(0.9)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"min": {"auc": 0.5}}, "missing"),
        ({"min": {"accuracy[night]": 0.5}}, "missing"),
        ({"max-drop": {"accuracy": 0.5}}, "no baseline"),
        ("accuracy", "rules, or a StopWhen"),
    ],
)
def test_rules_that_nothing_decides_are_refused(rules, message):
    with pytest.raises(ConfigError, match=message):
        run(data(0.9), rules)


def test_runs_that_cannot_end_early_are_refused(tmp_path):
    rules = {"min": {"accuracy": 0.8}}
    with pytest.raises(ConfigError, match="stream"):
        run(Stream(), rules)
    with pytest.raises(ConfigError, match="resume"):
        run(data(0.9), rules, resume=tmp_path)
    with pytest.raises(ConfigError, match="keep_samples"):
        run(data(0.9), rules, keep_samples=False)


def in_clusters(share: float, clusters: int, size: int, seed: int) -> tuple[TensorDataset, np.ndarray]:
    """Clusters of which a share is right as a whole, in any order of samples."""
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.repeat(np.arange(clusters), size))
    right = torch.from_numpy((rng.random(clusters) < share)[codes])
    target = torch.from_numpy(rng.integers(2, size=len(codes)))
    return TensorDataset(torch.nn.functional.one_hot(torch.where(right, target, 1 - target), 2).float(), target), codes


def test_whole_clusters_come_in_random_order():
    dataset, codes = in_clusters(0.9, 400, 5, 0)
    report = run(DataLoader(dataset, batch_size=7), {"min": {"accuracy": 0.75}}, cluster=codes)
    samples = report.sections[0].samples
    assert len(samples) < 1500
    assert ": pass." in report.notes[-1]
    counts = np.bincount(codes[samples.ids.values], minlength=400)
    assert ((counts > 0) & (counts < 5)).sum() <= 1
    whole, right = counts == 5, samples.column("correct")
    sums = np.bincount(codes[samples.ids.values], right, 400)[whole]
    expected = clustered_betting_interval(sums, np.full(len(sums), 5.0), 5, 0, 1)
    assert (accuracy(report).lower, accuracy(report).upper) == pytest.approx(expected)
    independent = run(dataset, {"min": {"accuracy": 0.75}})
    assert len(independent.sections[0].samples) < len(samples) / 2


def test_a_change_is_judged_by_the_clusters_of_the_baseline():
    dataset, codes = in_clusters(0.9, 400, 5, 1)
    main = run(dataset, cluster=codes)
    report = run(dataset, StopWhen({"max-drop": {"accuracy": 0.1}}, main), cluster=codes)
    assert len(report.sections[0].samples) < 1500
    assert ": pass." in report.notes[-1]


def test_clusters_that_are_known_too_late_are_refused():
    dataset, codes = in_clusters(0.9, 40, 5, 1)
    with pytest.raises(ConfigError, match="Pass cluster= as an array"):
        run(TensorDataset(*dataset.tensors, torch.from_numpy(codes)), {"min": {"accuracy": 0.75}}, cluster=2)


def test_a_rule_that_does_not_hold_rarely_passes_at_any_look_at_clusters():
    """Were the samples taken as independent, a third of these would pass."""
    random, passed, as_samples, repeats = np.random.default_rng(3), 0, 0, len(draws(200))
    for _ in range(repeats):
        sizes = 1 + random.geometric(1 / 6, 300)
        right = np.repeat(random.random(300) < 0.7, sizes)
        starts, codes = np.cumsum(sizes), np.repeat(np.arange(300), sizes)
        looks = starts[np.unique(np.geomspace(5, 299, 20).astype(int))]
        sums = np.bincount(codes, right)
        for look in looks:
            seen = int((starts <= look).sum())
            if clustered_betting_interval(sums[:seen], sizes[:seen].astype(float), sizes.max(), 0, 1)[0] > 0.7:
                passed += 1
                break
        as_samples += any(betting_interval(right[:look].astype(float), 0, 1)[0] > 0.7 for look in looks)
    assert passed <= stats.binom.ppf(0.999, repeats, 0.025)
    assert as_samples > 0.1 * repeats
