"""Intervals of values whose samples a report keeps: means, weights, clusters, slices; and of resampled groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
import pyarrow as pa
import torch
from scipy import stats

import assay.metrics as m
from assay import score
from assay.errors import ConfigError
from assay.meter import Meter
from assay.meter.resampling.intervals import bootstrap
from assay.metrics.base import Metric
from assay.report import Samples, Section, Value, controlled
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.tests_and_intervals import interval_of
from assay.stats.intervals import Array
from assay.stats.sampling import groups_of
from benchmarks.coverage.gate_reports import mean_report
from benchmarks.coverage.rows import SIZES, Found, Random, Row
from benchmarks.coverage.scores import area, normal_scores

LONG_TAIL = "long tail: the end on its side is reported as not trusted, and a gate does not decide by it"
Numbers = Callable[[Random, int], Array]


def of_samples(name: str, columns: Mapping[str, Array], codes: Array | None = None, scale: str = "") -> Found:
    """The interval that a report shows of a mean whose samples it keeps."""
    named = {} if codes is None else {"clusters": codes, "cluster": "passage"}
    samples = Samples.pack(range(len(columns["x"])), columns, **named)  # type: ignore[arg-type]
    mean = float(columns["x"].sum() / (columns["w"].sum() if "w" in columns else len(columns["x"])))
    value = Value(
        name,
        math.sqrt(mean) if scale else mean,
        numerator="x",
        denominator="w" if "w" in columns else "",
        scale=scale,
    )
    found = interval_of(MeasuredValue(value, samples), 0.95, safe=False)
    return {name: None if found.lower is None or found.upper is None else (found.lower, found.upper)}


SOURCES: tuple[tuple[str, Numbers, float, str], ...] = (
    ("normal", lambda random, n: random.normal(size=n), 0.0, ""),
    ("squared errors of normal ones", lambda random, n: random.normal(size=n) ** 2, 1.0, ""),
    ("squared errors of t(5)", lambda random, n: random.standard_t(5, n) ** 2, 5 / 3, LONG_TAIL),
    ("lognormal", lambda random, n: random.lognormal(size=n), math.exp(0.5), LONG_TAIL),
    ("cross-entropy of a good model", lambda random, n: np.logaddexp(0, -random.normal(3, 2, n)), 0.1820085, LONG_TAIL),
    ("shares in [0, 1], beta(1/2, 2)", lambda random, n: random.beta(0.5, 2, n), 0.2, ""),
)


def mean_rows() -> Iterator[Row]:
    for about, draw, truth, reason in SOURCES:

        def of_mean(random: Random, size: int, draw: Numbers = draw) -> Found:
            return of_samples("a mean of samples", {"x": draw(random, size)})

        yield Row(about, of_mean, {"a mean of samples": truth}, SIZES[:4], 2, reason)
    for about, draw, truth, reason in SOURCES[1:3]:

        def of_root(random: Random, size: int, draw: Numbers = draw) -> Found:
            return of_samples("MeanSquaredError, root", {"x": draw(random, size)}, scale="root")

        yield Row(about, of_root, {"MeanSquaredError, root": math.sqrt(truth)}, SIZES[:4], 2, reason)


def weighted_rows() -> Iterator[Row]:
    def of_numbers(random: Random, size: int) -> Found:
        weights = random.exponential(size=size)
        return of_samples("a weighted mean", {"x": weights * random.normal(size=size), "w": weights})

    def of_share(random: Random, size: int) -> Found:
        weights = random.exponential(size=size)
        return of_samples("a weighted share", {"x": weights * (random.random(size) < 0.9), "w": weights})

    yield Row("normal, exponential weights", of_numbers, {"a weighted mean": 0.0}, SIZES[:4], 2)
    yield Row("0.9 right, exponential weights", of_share, {"a weighted share": 0.9}, SIZES[:4], 2)


SHARED = 0.6
"""The share of samples whose outcome is that of their cluster."""


def codes_of(clusters: int, how: str, random: Random) -> Array:
    """The cluster of each sample; ten samples in a cluster, on average."""
    sizes = np.full(clusters, 10) if how == "equal" else 1 + random.geometric(1 / 9, clusters)
    return np.repeat(np.arange(clusters), sizes)


def shared(codes: Array, draw: Callable[[int], Array], random: Random) -> Array:
    """Numbers of samples, in a share of which those of the cluster take their place."""
    of_cluster = draw(int(codes.max()) + 1)[codes]
    return np.where(random.random(len(codes)) < SHARED, of_cluster, draw(len(codes)))


def clustered_rows() -> Iterator[Row]:
    for how in ("equal", "uneven"):

        def of_share(random: Random, clusters: int, how: str = how) -> Found:
            codes = codes_of(clusters, how, random)
            right = shared(codes, lambda n: random.random(n) < 0.7, random)
            return of_samples("a share, in clusters", {"x": right}, codes)

        def of_numbers(random: Random, clusters: int, how: str = how) -> Found:
            codes = codes_of(clusters, how, random)
            return of_samples("a mean, in clusters", {"x": shared(codes, random.standard_normal, random)}, codes)

        yield Row(f"n clusters of 10, {how}", of_share, {"a share, in clusters": 0.7}, SIZES[:3], 2)
        yield Row(f"n clusters of 10, {how}", of_numbers, {"a mean, in clusters": 0.0}, SIZES[:3], 2)

    def of_ranking(random: Random, clusters: int) -> Found:
        codes = codes_of(clusters, "equal", random)
        y = shared(codes, lambda n: random.integers(0, 2, n), random)
        x = stats.norm.cdf(1.2 * y + shared(codes, random.standard_normal, random))
        return scored({"AUROC, in clusters": m.AUROC()}, {"p": x, "y": y, "c": codes}, cluster="c")

    yield Row("n clusters of 10, resampled", of_ranking, {"AUROC, in clusters": area(1.2, 1, 1)}, (100,), 10)


def scored(metrics: Mapping[str, Metric], columns: Mapping[str, Array], slice_: str = "", **options: str) -> Found:
    """What the command ``assay score`` shows of a table: of all of it, or of a slice."""
    report = score(
        pa.table({name: pa.array(list(each) if each.ndim > 1 else each) for name, each in columns.items()}),
        dict(metrics),
        preds="p",
        target="y",
        progress=False,
        **options,  # type: ignore[arg-type]
    )
    section: Section = report.of_slice(slice_).sections[0] if slice_ else report.sections[0]
    ends = {value.name: (value.lower, value.upper) for value in section.values}
    return {name: None if None in ends[name] else ends[name] for name in metrics}  # type: ignore[misc]


def sliced_rows() -> Iterator[Row]:
    def of_slice(random: Random, size: int) -> Found:
        p, y = normal_scores(0.3, 1.2, 1.0, 1.0, random, 5 * size)
        columns = {"p": p, "y": y, "s": (np.arange(5 * size) % 5 == 0).astype(int)}
        metrics = {"Accuracy, in a slice": m.Accuracy(), "AUROC, in a slice": m.AUROC()}
        return scored(metrics, columns, "s = 1", slices="s")

    right = 0.7 * float(stats.norm.cdf(0)) + 0.3 * float(stats.norm.cdf(1.2))
    truth = {"Accuracy, in a slice": right, "AUROC, in a slice": area(1.2, 1, 1)}
    yield Row("a fifth of the rows; n rows in it", of_slice, truth, (100, 1_000), 20)


def scores_of_classes(random: Random, size: int) -> tuple[Array, Array]:
    target = random.choice(4, size, p=[0.4, 0.3, 0.2, 0.1])
    logits = 1.4 * np.eye(4)[target] + random.normal(size=(size, 4))
    return logits, target


def of_groups(
    make: Callable[[], dict[str, Metric]], draw: Callable[..., tuple[Array, ...]], random: Random, n: int
) -> Found:
    """The intervals of 400 resamples of 128 groups."""
    preds, target = (torch.from_numpy(each) for each in draw(random, n))
    codes, groups = groups_of(np.arange(n), int(random.integers(1 << 30)), 128), []
    for code in np.unique(codes):
        mask = torch.from_numpy(codes == code)
        groups.append(Meter(**make()))
        groups[-1].update(preds[mask], target[mask])
    found = bootstrap(groups, seed=int(random.integers(1 << 30)))
    return {name: (found[name].lower, found[name].upper) if name in found else None for name in make()}


def resampled_rows() -> Iterator[Row]:
    def make() -> dict[str, Metric]:
        return {
            "AUROC, macro, resampled": m.AUROC(num_classes=4, logits=True),
            "LogLoss": m.LogLoss(num_classes=4, logits=True),
        }

    meter = Meter(**make())
    meter.update(*(torch.from_numpy(each) for each in scores_of_classes(np.random.default_rng(1), 300_000)))
    truth = {name: float(value) for name, value in meter.compute().items()}
    yield Row("4 classes, resampled", partial(of_groups, make, scores_of_classes), truth, (100,), 20)


def controlled_mean(yes_or_no: bool, random: Random, n: int) -> Found:
    """A model that was measured on a random tenth of the samples of the baseline."""
    hard = random.random(10 * n)
    new = random.random(10 * n) < 0.9 - 0.4 * hard if yes_or_no else hard * random.exponential(size=10 * n)
    old = random.random(10 * n) < 0.9 - 0.5 * hard if yes_or_no else hard * random.exponential(size=10 * n)
    baseline = mean_report(old)
    try:
        value = controlled(mean_report(new[:n]), "x", baseline)
    except ConfigError:  # too few samples for how skewed they are
        return {CONTROLLED: None}
    return {CONTROLLED: None if value.lower is None or value.upper is None else (value.lower, value.upper)}


CONTROLLED = "a mean, controlled by a baseline"


def adjusted_rows() -> Iterator[Row]:
    draw = partial(controlled_mean, True)
    yield Row("yes or no, n of 10 n samples of the baseline", draw, {CONTROLLED: 0.7}, (100, 1_000), 4)
    draw = partial(controlled_mean, False)
    yield Row("losses with a long tail, likewise", draw, {CONTROLLED: 0.5}, (100, 1_000), 4)


def rows() -> Iterator[Row]:
    for each in (mean_rows, weighted_rows, adjusted_rows, clustered_rows, sliced_rows, resampled_rows):
        yield from each()
