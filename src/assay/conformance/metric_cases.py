"""All metrics on fixed samples: values, whether they are compared to the bit, and what their counts must satisfy."""

from __future__ import annotations

import hashlib
import json
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_map_only

from assay._records import OPTIONAL, Record
from assay.errors import AssayWarning, DeviceFaultError, MissingDependencyError
from assay.meter import Meter
from assay.meter.checks.law_checks import check_laws
from assay.meter.file import checksum
from assay.metrics.base import Metric
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.samples import draw_columns, draw_for, examples, integers, public_metrics
from assay.tally.conservation import HostCount

ROWS, SEED = 48, 2026
SPLIT = (slice(19, ROWS), slice(0, 19))
"""The same rows as two batches, in another order."""
RELATIVE, ABSOLUTE = 2.0**-17, 2.0**-20
"""How far a value of float terms may lie from that of the CPU: each term is rounded to float32 (2^-24) a few times."""


class MetricValue(Record):
    """What a metric gives for its fixed samples.

    Args:
        samples: a digest of the samples.
        layout: the form of the value, with dtypes and shapes.
        numbers: all numbers of the value, in order.
        is_rounded: whether terms of floats are rounded on the device before they are summed, so that values are
            compared within their rounding; else to the bit.
    """

    samples: str
    layout: str
    numbers: tuple[float, ...]
    is_rounded: bool = field(default=False, metadata=OPTIONAL)


@dataclass(frozen=True)
class MetricCase:
    """A metric with fixed samples.

    Attributes:
        metric: the metric.
        weighted: whether samples have weights, which are integers.
    """

    metric: Metric
    weighted: bool

    def __str__(self) -> str:
        return f"{self.metric!r}{', weighted' if self.weighted else ''}"

    @property
    def is_rounded(self) -> bool:
        """Whether terms of floats are rounded on the device before they are summed."""
        return any(map(_has_rounded_terms, _within(self.metric)))

    def samples(self) -> dict[str, Any]:
        """The arguments of an update with all samples, on the CPU."""
        generator = torch.Generator("cpu").manual_seed(SEED)
        preds, *target = draw_for(self.metric)(generator, ROWS)
        columns = draw_columns(self.metric, generator, ROWS)
        weights = {"weights": integers(generator, 0, 9, ROWS) * 1.0} if self.weighted else {}
        return {"preds": preds, "target": target[0] if target else None} | weights | columns

    def counted(self, batches: Sequence[Mapping[str, Any]], device: str) -> Meter:
        """A new meter that was given these batches on a device."""
        meter = Meter(weighted=self.weighted, value=self.metric)
        for batch in batches:
            meter.update(**tree_map_only(Tensor, lambda tensor: tensor.to(device), dict(batch)))
        return meter


def metric_cases() -> Iterator[MetricCase]:
    """Each public metric with each of its examples, with and without weights where it takes them.

    Metrics that need a package which is not installed are left out.
    """
    for kind in public_metrics().values():
        metrics = examples(kind)
        while (metric := _next(metrics)) is not None:
            yield MetricCase(metric, False)
            if metric.inputs != "boxes" and getattr(metric, "aggregation", "mean") == "mean":
                yield MetricCase(metric, True)


def _next(metrics: Iterator[Metric]) -> Metric | None:
    with suppress(MissingDependencyError):
        return next(metrics, None)
    return None


def _within(metric: Metric) -> Iterator[Metric]:
    """A metric and those that it is made of."""
    yield metric
    for part in (*getattr(metric, "operands", ()), getattr(metric, "metric", None)):
        if isinstance(part, Metric):
            yield from _within(part)


def _has_rounded_terms(metric: Metric) -> bool:
    of_logits = metric.inputs == "labels" and getattr(metric, "logits", False) and not isinstance(metric, LabelMetric)
    return of_logits or not metric.exact_terms


def value_on(case: MetricCase, device: str) -> MetricValue:
    """What a metric gives for its fixed samples, counted on a device in two batches."""
    samples = case.samples()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)  # samples may lack a class, and strings have no device
        meter = case.counted([_rows(samples, rows) for rows in SPLIT], device)
        value = meter.compute()["value"]
    return MetricValue(_digest(samples), _layout(value), tuple(_numbers(value)), case.is_rounded)


def differences(got: MetricValue, expected: MetricValue, is_rounded: bool) -> str:
    """How two values of one metric differ; empty if they do not."""
    if got.layout != expected.layout or len(got.numbers) != len(expected.numbers):
        return f"{got.layout} instead of {expected.layout}"
    agree = _is_near if is_rounded else _is_same
    wrong = [(k, *pair) for k, pair in enumerate(zip(got.numbers, expected.numbers, strict=True)) if not agree(*pair)]
    if not wrong:
        return ""
    place, one, other = wrong[0]
    return f"{len(wrong)} of {len(got.numbers)} numbers differ, at {place}: {one!r} instead of {other!r}"


def _is_same(one: float, other: float) -> bool:
    return one == other or (math.isnan(one) and math.isnan(other))


def _is_near(one: float, other: float) -> bool:
    return _is_same(one, other) or abs(one - other) <= ABSOLUTE + RELATIVE * abs(other)


def broken_law(case: MetricCase, device: str) -> str:
    """Which law the counts of a metric on a device break; empty if they break none.

    Laws are those of each tally, the fingerprints of the batches, and that counts depend neither on the order of
    samples nor on how they are split and merged.
    """
    samples = case.samples()
    try:
        whole = _counts(case.counted([samples], device))
        first, second = (case.counted([_rows(samples, rows)], device) for rows in SPLIT)
        added = _counts(first + second)
    except DeviceFaultError as error:
        return str(error)
    return "" if whole == added else "the counts of two batches, in two meters that are added, differ from those of one"


def _counts(meter: Meter) -> str:
    """A digest of canonical counts; raises where they break a law."""
    check_laws(meter.tallies, meter.states(), HostCount(meter.rows), "the counts")
    return checksum("", meter.state_dict())


def distinct_tallies(cases: Iterator[MetricCase]) -> dict[str, MetricCase]:
    """One case for each distinct tally with its samples, by the names of the tally and the metric.

    Metrics of strings are left out, as they are counted on the CPU.
    """
    found: dict[Any, MetricCase] = {}
    for case in cases:
        if case.metric.family == "text":
            continue
        found.setdefault((case.metric.tally(case.weighted), draw_for(case.metric), case.weighted), case)
    return {f"{type(tally).__name__} of {case}": case for (tally, *_), case in found.items()}


def _rows(samples: Mapping[str, Any], rows: slice) -> dict[str, Any]:
    return {name: None if each is None else each[rows] for name, each in samples.items()}


def _digest(samples: Mapping[str, Any]) -> str:
    plain = tree_map_only(Tensor, lambda tensor: [str(tensor.dtype), tensor.tolist()], dict(samples))
    return hashlib.blake2b(json.dumps(plain).encode(), digest_size=8).hexdigest()


def _layout(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {list(value.shape)}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_layout(each)}' for name, each in value.items())}}}"
    return f"({', '.join(map(_layout, value))})" if isinstance(value, list | tuple) else type(value).__name__


def _numbers(value: Any) -> Iterator[float]:
    if isinstance(value, Tensor):
        yield from value.double().reshape(-1).tolist()
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _numbers(each)
    else:
        yield float(value)
