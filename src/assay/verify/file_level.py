"""What a report says of itself: digests, counts that give the values, and per-sample values that add up to them."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import torch

from assay._records import read_text
from assay.errors import AssayError, StateError, UnknownMetricError
from assay.evaluation.results.provenance import meter_from
from assay.evaluation.results.report_values import IntervalSources, values_of
from assay.meter import Meter
from assay.meter.resampling.intervals import intervals_or_reasons
from assay.metrics.signature import signature
from assay.render.text import first_names
from assay.report import Report, Samples, Section, Value
from assay.report.per_sample.packed_array import Array
from assay.report.report import SCHEMA
from assay.report.value import terms_of
from assay.stats.scales import SCALES
from assay.verify.group_tables import sum_faults
from assay.verify.result import Outcome, VerificationCheck

INTERVAL_DIGITS = 1e-9
"""How near an interval must be: quantiles of distributions differ between versions of SciPy in their last digits."""
_TERMS = {np.dtype(np.float16): 2e-3}
_OTHER_TERMS = 1e-6  # a difference of float32 numbers is rounded before its square is kept as float64
_SHOWN = 3


def verify_file(path: str | os.PathLike[str]) -> tuple[Report | None, list[VerificationCheck]]:
    """Check a stored report against itself.

    Args:
        path: the file, or its folder.

    Returns:
        The report, or None where the file was changed or cut short; and what was checked.

    Raises:
        StateError: a newer version of assay wrote the file.
        OSError: it cannot be read.
    """
    try:
        report = Report.load(path)
        checks = [_check("schema and digest", "pass"), *_all(report)]
    except StateError as error:
        if _is_newer(path):
            raise
        return None, [_check("schema and digest", "fail", str(error))]
    return report, checks


def _all(report: Report) -> Iterator[VerificationCheck]:
    for section in report.sections:
        prefix = f"{section.name}: " if len(report.sections) > 1 else ""
        version = report.environment.get("assay", "")
        for each in _section(section, version):
            yield VerificationCheck(each.level, prefix + each.what, each.outcome, each.found, each.is_needed)


def _check(what: str, outcome: Outcome, found: str = "", is_needed: bool = False) -> VerificationCheck:
    return VerificationCheck("file", what, outcome, found, is_needed)


def _is_newer(path: str | os.PathLike[str]) -> bool:
    """Whether a file says that it is a report of a later schema."""
    with suppress(AssayError, LookupError, TypeError, ValueError, OSError):
        name, _, version = str(json.loads(read_text(path))["schema"]).partition("/")
        own, _, number = SCHEMA.partition("/")
        return name == own and version.isdecimal() and int(version) > int(number)
    return False


def _section(section: Section, version: str) -> Iterator[VerificationCheck]:
    meter = None
    if section.counts is None or not section.counts.packed:
        if section.values:
            kept = "no counts" if section.counts is None else "the digest of its counts only"
            yield _check("counts", "not checked", f"the file holds {kept}: give --data or --model", is_needed=True)
    else:
        try:
            meter = meter_from(section.counts, "counts")
            yield _check("counts", "pass", "they have their digest")
        except UnknownMetricError as error:
            yield _check("counts", "not checked", str(error), is_needed=True)
        except StateError as error:
            yield _check("counts", "fail", str(error))
    numbers: dict[str, tuple[str, Value]] = {}
    if meter is not None:
        try:
            numbers = _computed(meter, section, version)
            yield _values(section, numbers, meter)
        except AssayError as error:  # such as counts of invalid labels
            yield _check("values", "fail", str(error))
            meter = None
    if section.samples is not None:
        yield from _samples(section, section.samples, meter)
    if meter is not None and section.values:
        yield _intervals(section, numbers, meter)
    if section.by:
        faults = list(sum_faults(section, None if meter is None else meter.rows))
        names = ", ".join(f"by {table.name}" for table in section.by)
        yield _verdict("tables by a column", faults, f"{names}: the groups add up to the values")
    unseen = [f"{len(section.slices)} slices"] * bool(section.slices) + [each.name for each in section.tables]
    unseen += [each.name for each in section.plots]
    if unseen:
        yield _check("slices, tables and plots", "not checked", f"{', '.join(unseen[:6])}: give --data or --model")


def _computed(meter: Meter, section: Section, version: str) -> dict[str, tuple[str, Value]]:
    """By name, the values that the counts give, each with the name of its metric."""
    metrics = meter.metrics
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = meter.compute()
    lines = {name: signature(each, meter.rows, weighted=meter.weighted) for name, each in metrics.items()}
    lines = {name: f"{line.rpartition(':')[0]}:{version}" for name, line in lines.items()}
    return {each.name: (name, each) for name, each in values_of(results, metrics, meter.rows, lines)}


def _values(section: Section, numbers: dict[str, tuple[str, Value]], meter: Meter) -> VerificationCheck:
    """The values, to the bit, with their signatures and counts."""
    faults = []
    for value in section.values:
        if value.name not in numbers:
            faults.append(f"{value.name}: the counts have no such value")
            continue
        _, again = numbers[value.name]
        if not same_number(value.value, again.value):
            faults.append(f"{value.name}: {value.value!r}, but the counts give {again.value!r}")
        for name in ("count", "signature", "higher_is_better"):
            if getattr(value, name) != getattr(again, name):
                faults.append(f"{value.name}: {name} {getattr(value, name)!r}, expected {getattr(again, name)!r}")
    faults += [f"{name}: not in the report" for name in numbers.keys() - {value.name for value in section.values}]
    return _verdict("values", faults, f"{len(section.values)} computed from the counts: the same bits")


def _samples(section: Section, samples: Samples, meter: Meter | None) -> Iterator[VerificationCheck]:
    faults: list[str] = []
    places: list[tuple[str, tuple[Value, ...], Array | None]] = [("", section.values, None)]
    places += [
        (f" in {each.name}", each.values, each.members.values) for each in section.slices if each.members is not None
    ]
    checked = 0
    for where, values, members in places:
        for value in values:
            if value.numerator:
                checked += 1
                faults += [f"{value.name}{where}: {fault}" for fault in _sum_fault(value, samples, members)]
    if meter is not None and len(samples.ids.values) != meter.rows:
        faults.append(f"{len(samples.ids.values):,} samples, but {meter.rows:,} were counted")
    yield _verdict("per-sample values", faults, f"{checked} values are the means of their columns")
    if samples.decision is None or samples.target is None:
        return
    decision, target = samples.decision.values, samples.target.values
    names = [each.name for each in samples.columns]
    faults = []
    ignores = meter is None or any(getattr(each, "ignore_index", None) is not None for each in meter.metrics.values())
    if "correct" in names and not ignores:
        wrong = np.flatnonzero(samples.column("correct").astype(bool) != (decision == target))
        faults += [f"sample {samples.ids.values[k]}: correct is not decision == target" for k in wrong[:_SHOWN]]
    counted = [] if meter is None else _of_decisions(meter)
    for name in counted:
        assert meter is not None
        if not _gives_counts(meter.only(name), decision, target):
            faults.append(f"{name}: the decisions and targets do not add up to its counts")
    yield _verdict("decisions and targets", faults, f"they add up to the counts of {', '.join(counted) or 'no metric'}")


def _sum_fault(value: Value, samples: Samples, members: Array | None) -> list[str]:
    """What is wrong with a value that is a mean of columns: integers to the bit, floats within their rounding."""
    terms, weights = terms_of(samples, value.numerator, value.denominator, members)
    kinds = [samples.column(name).dtype for name in (value.numerator, value.denominator) if name]
    divisor = float(weights.sum())
    if not divisor or not np.isfinite(terms).all():
        return []
    if not value.scale and all(kind.kind in "biu" for kind in kinds):
        mean = int(terms.sum()) / int(divisor)
        return [] if mean == value.value else [f"{value.value!r}, but the mean of {value.numerator} is {mean!r}"]
    mean, size = math.fsum(terms) / divisor, math.fsum(np.abs(terms)) / abs(divisor)
    number = float(SCALES[value.scale].mean(np.float64(value.value)))
    near = max(_TERMS.get(kind, _OTHER_TERMS) for kind in kinds)
    return (
        [] if abs(mean - number) <= near * size else [f"{value.value!r} is not that of the mean of {value.numerator}"]
    )


def _of_decisions(meter: Meter) -> list[str]:
    """The metrics whose counts follow from decisions and targets alone."""
    if meter.weighted:
        return []
    found = []
    for name, metric in meter.metrics.items():
        tallies = meter.only(name).tallies
        if getattr(metric, "top_k", 1) == 1 and all(
            type(t).__module__.startswith("assay.tally.labels") for t in tallies
        ):
            found.append(name)
    return found


def _gives_counts(meter: Meter, decision: Array, target: Array) -> bool:
    """Whether decisions and targets give the counts of a meter, or are none that it takes, as of several labels."""
    again = meter.fresh()
    try:
        again.update(_tensor(decision), _tensor(target))
    except AssayError:
        return True
    except ValueError:
        return False
    return _same_states(meter, again)


def _tensor(array: Array) -> torch.Tensor:
    """Labels as a tensor.

    Raises:
        ValueError: they are no integers.
    """
    with np.errstate(invalid="ignore"):  # NaN
        labels = array.astype(np.int64)
    if not np.array_equal(labels, array):
        raise ValueError("labels that are no integers")
    return torch.from_numpy(np.ascontiguousarray(labels))


def _same_states(one: Meter, other: Meter) -> bool:
    states = [{name: value for name, value in meter.state_dict().items() if name != "about"} for meter in (one, other)]
    return states[0].keys() == states[1].keys() and all(torch.equal(states[0][k], states[1][k]) for k in states[0])


def _intervals(section: Section, numbers: dict[str, tuple[str, Value]], meter: Meter) -> VerificationCheck:
    """The intervals that follow from counts or per-sample values; those of resampled groups do not."""
    samples = section.samples
    counts, faults, unseen = section.counts, [], []
    assert counts is not None
    depends = section.stopped or (samples is not None and samples.clusters is not None)
    for value in section.values:
        if value.lower is None and value.upper is None:
            continue
        if depends or value.replicates is not None or value.confidence_level is None or value.name not in numbers:
            unseen.append(value.name)
            continue
        name, number = numbers[value.name]
        closed = intervals_or_reasons(meter, value.confidence_level, counts.n_resamples, counts.seed)
        terms = {value.name: (value.numerator, value.denominator)} if value.numerator else {}
        sources = IntervalSources(value.confidence_level, samples, terms, closed=closed)
        again = sources.with_interval(number, meter.metrics[name].value_range)
        if again.lower is None:
            unseen.append(value.name)
        for end in ("lower", "upper", "safe_lower", "safe_upper"):
            if again.lower is not None and not _near(getattr(value, end), getattr(again, end)):
                faults.append(f"{value.name}: {end} {getattr(value, end)!r}, expected {getattr(again, end)!r}")
    if unseen and not faults:
        return _check("intervals", "not checked", f"{', '.join(unseen)}: give --data or --model")
    return _verdict("intervals", faults, "they follow from counts and samples")


def same_number(one: float, other: float) -> bool:
    """Whether two numbers have the same bits, or are both undefined."""
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other and math.copysign(1, one) == math.copysign(1, other)


def _near(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return one == other or math.isclose(one, other, rel_tol=INTERVAL_DIGITS, abs_tol=INTERVAL_DIGITS)


def _verdict(what: str, faults: list[Any], found: str) -> VerificationCheck:
    if not faults:
        return _check(what, "pass", found)
    return _check(what, "fail", first_names(faults, _SHOWN, "; "))
