"""Reports as ``evaluate`` makes them, of samples that are drawn: what gates and comparisons are simulated with."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch

from assay import evaluate
from assay.evaluation.results.report_values import IntervalSources, values_of
from assay.meter import Meter
from assay.meter.resampling.intervals import intervals_or_reasons
from assay.metrics.base import Metric
from assay.metrics.per_sample import per_sample_values
from assay.report import Report, Samples, Section, Slice, Value
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.resampling import Resampling
from assay.stats.bootstrap import poisson_draws
from assay.stats.intervals import Array
from assay.stats.sampling import groups_of

Measure = Callable[[Array, Array, Array], Array]
"""The values of a metric for weights of the samples (a row a value), of targets and scores."""
GROUPS = 128
DRAWS = 400


def packed(columns: Mapping[str, Array], codes: Array | None, first: int) -> Samples:
    rows = len(next(iter(columns.values())))
    named = {} if codes is None else {"clusters": codes, "cluster": "passage"}
    return Samples.pack(
        range(first, first + rows),
        columns,
        target=np.zeros(rows),
        data="simulated",
        **named,  # type: ignore[arg-type]
    )


def mean_report(
    values: Array,
    codes: Array | None = None,
    *,
    weights: Array | None = None,
    root: bool = False,
    parts: Array | None = None,
    higher_is_better: bool = True,
    first: int = 0,
) -> Report:
    """The report of a mean.

    Args:
        values: what each sample contributes.
        codes: the cluster of each sample.
        weights: of a weighted mean.
        root: of the root of a mean.
        parts: the slice of each sample, named ``"part = 0"`` and so on.
        higher_is_better: which values are better.
        first: the id of the first sample.
    """
    columns = {"x": values} if weights is None else {"x": weights * values, "w": weights}

    def value(mask: Array) -> Value:
        mean = float(columns["x"][mask].sum() / (mask.sum() if weights is None else weights[mask].sum()))
        return Value(
            "x",
            math.sqrt(mean) if root else mean,
            numerator="x",
            denominator="" if weights is None else "w",
            scale="root" if root else "",
            higher_is_better=higher_is_better,
        )

    whole = np.ones(len(values), bool)
    masks = [] if parts is None else [parts == k for k in np.unique(parts)]
    slices = tuple(Slice.of(f"part = {k}", [value(mask)], mask) for k, mask in enumerate(masks))
    section = Section("test", (value(whole),), samples=packed(columns, codes, first), slices=slices, min_slice_size=1)
    return Report("run", (section,))


def metric_report(metric: Metric, *columns: Array, **named: Array) -> Report:
    """The report of a metric: its closed form, and what each sample contributes, without resamples."""
    tensors = [torch.from_numpy(np.ascontiguousarray(each)) for each in columns]
    others = {name: torch.from_numpy(each) for name, each in named.items()}
    meter = Meter(x=metric)
    meter.update(*tensors, **others)
    terms = None if others else per_sample_values(metric, *tensors)
    samples, names = None, {}
    if terms is not None:
        samples = packed({name: each.numpy() for name, each in terms.terms.items()}, None, 0)
        names = {"x": (terms.numerator, terms.denominator)}
    sources = IntervalSources(0.95, samples, names, closed=intervals_or_reasons(meter))
    (_, value), *_ = values_of(meter.compute(), meter.metrics, meter.rows)
    return Report("run", (Section("test", (sources.with_interval(value, metric.value_range),), samples=samples),))


def evaluated(metric: Metric, *columns: Array) -> Report:
    """What ``evaluate`` reports, with its resamples."""
    data = torch.utils.data.TensorDataset(*(torch.from_numpy(np.ascontiguousarray(each)) for each in columns))
    return evaluate(torch.nn.Identity(), data, {"x": metric}, progress=False)


def resampled(measure: Measure, target: Array, scores: Array, codes: Array | None = None) -> Report:
    """The report of a value without closed form, from replicates in which samples of a group have one weight."""
    n, seed = len(target), 0
    group = np.unique(groups_of(np.arange(n) if codes is None else codes, seed, GROUPS), return_inverse=True)[1]
    filled = int(group.max()) + 1
    weights = poisson_draws(DRAWS, filled, seed)[:, group].astype(float)
    value, *replicates = measure(np.vstack([np.ones(n), weights]), target, scores)
    resampling = Resampling(seed, GROUPS, filled, n, "simulated", cluster="" if codes is None else "passage")
    moved = PackedArray.of((np.array(replicates) - value).astype(np.float32))
    kept = Value("x", float(value), replicates=moved, count=n, higher_is_better=True)
    return Report("run", (Section("test", (kept,), resampling=resampling),))
