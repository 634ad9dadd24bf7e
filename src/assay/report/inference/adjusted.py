"""Adjusted values: by a baseline on more samples, by known shares of slices, and by how often a judge errs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from assay.errors import ConfigError, describe
from assay.report.inference.clusters import are_clustered
from assay.report.inference.measured_value import MeasuredValue, why_not_the_same
from assay.report.inference.named_values import metric_of
from assay.report.inference.sequential import on_the_same_samples
from assay.report.inference.spread import NOT_FINITE, is_finite
from assay.report.inference.tests_and_intervals import interval_of
from assay.report.report import Report, Source
from assay.report.value import Value, check_confidence_level
from assay.stats.control_variates import ControlledMean, stratified_interval
from assay.stats.intervals import FEWEST, risky_end
from assay.stats.misclassified_shares import JudgedShare


def controlled(report: Source, metric: str, baseline: Source, confidence_level: float = 0.95) -> Value:
    """A metric of a model that was measured on some of the samples of a baseline, which is the control.

    Where these samples are easier for the baseline than the others are, they are easier for the model, too: the
    estimate takes that off. It holds where they are a random part of the samples of the baseline, not chosen by what
    they showed.

    Args:
        report: the report of the model.
        metric: a mean over samples, as ``metric`` or ``section/metric``.
        baseline: a report of another model on these samples and more.
        confidence_level: of the interval.

    Returns:
        The value; its note says how many samples the control has, and what is left of the variance.

    Raises:
        ConfigError: the metric is no mean of at least 12 samples of which the baseline has more, there are clusters, or
            the samples are too few for how skewed they are.

    Example:
        >>> from assay.report import Samples, Section
        >>> def run(n, seed):
        ...     loss = np.arange(400)[:n] % 7 + np.random.default_rng(seed).random(n)
        ...     values = [Value("loss", loss.mean(), numerator="loss")]
        ...     return Report("run", [Section("test", values, samples=Samples.pack(range(n), {"loss": loss}))])
        >>> found = controlled(run(100, 1), "loss", run(400, 2))
        >>> found.note
        'controlled by the baseline on 400 samples: 28 % of the variance'
    """
    check_confidence_level("confidence_level", confidence_level)
    own, its = (_found(Report.of(each), metric) for each in (report, baseline))
    if why := why_not_the_same(own, its):
        raise _refused(metric, f"another metric of this name in the baseline: {why}")
    for each in (own, its):
        if why := _why_no_mean(each):
            raise _refused(metric, why)
    same = on_the_same_samples(its, own)
    if isinstance(same, str):
        raise _refused(metric, f"not paired: {same}")
    controls, values = (each.terms().astype(np.float64) for each in same)
    of_all = its.terms().astype(np.float64)
    if not FEWEST <= len(values) < len(of_all):
        got = f"{len(values):,} samples of the {len(of_all):,} that the baseline has"
        raise _refused(metric, f"{got}: no fewer than {FEWEST}, and fewer than all, can be controlled")
    if float(np.ptp(controls)) == 0:
        raise _refused(metric, "the baseline has the same value for each of these samples")
    found = ControlledMean.of(values, controls, float(of_all.mean()), len(of_all))
    rare = min(float(values.sum()), float((1 - values).sum())) if own.share() is not None else math.inf
    if rare < FEWEST or not found.error or risky_end(found.residuals):
        raise _refused(metric, "too few samples for how skewed they are")
    lower, upper = found.interval(confidence_level)
    if own.share() is not None:
        lower, upper = max(lower, 0.0), min(upper, 1.0)
    note = f"controlled by the baseline on {len(of_all):,} samples: {100 * found.variance_ratio:.0f} % of the variance"
    return _adjusted(own.value, found.mean, lower, upper, len(values), note, confidence_level)


def stratified(report: Source, metric: str, shares: Mapping[str, float], confidence_level: float = 0.95) -> Value:
    """A metric where slices have other shares among the samples than where the model is used.

    Args:
        report: the report, with slices.
        metric: a mean over samples, as ``metric`` or ``section/metric``.
        shares: of each slice, by name, its share where the model is used: ``{"sex = f": 0.5, "sex = m": 0.5}``. Each
            sample is in one of them.
        confidence_level: of the interval.

    Raises:
        ConfigError: shares do not add up to 1, slices leave samples out or share some, the metric is no mean over
            samples, there are clusters, or a slice has no interval.

    Example:
        >>> from assay.report import Samples, Section, Slice
        >>> right, night = np.arange(200) % 10 > 0, np.arange(200) < 40
        >>> part = lambda name, chosen: Slice.of(name, [Value("x", right[chosen].mean(), numerator="right")], chosen)
        >>> section = Section(
        ...     "test",
        ...     [Value("x", 0.9, numerator="right")],
        ...     samples=Samples.pack(range(200), {"right": right}),
        ...     slices=[part("night", night), part("day", ~night)],
        ... )
        >>> round(stratified(Report("run", [section]), "x", {"night": 0.5, "day": 0.5}).lower, 3)
        0.829
    """
    check_confidence_level("confidence_level", confidence_level)
    total = sum(shares.values())
    if not shares or min(shares.values()) < 0 or abs(total - 1) > 1e-9:
        raise ConfigError(describe("shares", f"a sum of {total:g}", "0 or more each, 1 in all", "Correct the shares"))
    found = metric_of(Report.of(report), metric)
    if isinstance(found, str):
        raise _refused(metric, found)
    section, whole = found
    if why := _why_no_mean(whole):
        raise _refused(metric, why)
    slices = {each.name: each for each in section.slices if each.members is not None}
    if missing := [name for name in shares if name not in slices]:
        expected = f"some of {', '.join(map(repr, slices)) or 'no slices'}"
        raise ConfigError(describe("shares", f"a slice {missing[0]!r}", expected, "Name slices of the report"))
    members = np.sum([slices[name].members.values for name in shares], axis=0)  # type: ignore[union-attr]
    if not (members == 1).all():
        got = f"{int((members == 0).sum()):,} samples in no slice, {int((members > 1).sum()):,} in several"
        raise ConfigError(describe("shares", got, "each sample in one slice", "Name all values of one slice"))
    parts = [MeasuredValue.of(section, whole.value.name, slices[name]) for name in shares]
    ends = []
    for name, part in zip(shares, parts, strict=True):
        interval = interval_of(part, confidence_level, safe=False)
        if interval.lower is None or interval.upper is None or interval.risky:
            raise _refused(metric, f"slice {name!r}: {interval.note or 'too few samples for an interval'}")
        ends.append((interval.lower, interval.upper))
    mean, (lower, upper) = stratified_interval([*shares.values()], [part.value.value for part in parts], ends)
    return _adjusted(whole.value, mean, lower, upper, len(members), "stratified by known shares", confidence_level)


def rogan_gladen(judge: Source, metric: str, people: Source, confidence_level: float = 0.95) -> Value:
    """A share of yes that a judge found, corrected for how often it errs where people said what is right.

    The judge errs as often on all samples as on those that people labelled, of each kind: of what is yes, and of what
    is no. So these may be of another source, or chosen by their label, but not by what the judge said of them. Where
    they are a random part of all, `controlled` has the shorter interval.

    Args:
        judge: the report of what a judge, such as a language model, said of all samples.
        metric: a mean of yes or no, as ``metric`` or ``section/metric``, in both reports.
        people: the report of what people said of some of them, 12 or more of each kind.
        confidence_level: of the interval.

    Returns:
        The value; its note has the sensitivity and the specificity of the judge.

    Raises:
        ConfigError: the metric is no mean of yes or no, there are clusters, people labelled fewer than 12 of a kind, or
            the judge is no better than chance.

    Example:
        >>> from assay.report import Samples, Section
        >>> def run(yes):
        ...     samples = Samples.pack(range(len(yes)), {"yes": yes})
        ...     return Report("run", [Section("test", [Value("x", yes.mean(), numerator="yes")], samples=samples)])
        >>> truth = np.arange(400) % 5 < 3
        >>> said = truth ^ (np.arange(400) % 11 == 0)
        >>> found = rogan_gladen(run(said), "x", run(truth[:100]))
        >>> round(found.value, 3), found.note
        (0.597, 'corrected for a judge with sensitivity 0.900 and specificity 0.900 on 100 samples')
    """
    check_confidence_level("confidence_level", confidence_level)
    of_all, known = (_found(Report.of(each), metric) for each in (judge, people))
    for each in (of_all, known):
        if why := _why_no_mean(each):
            raise _refused(metric, why)
        if each.share() is None:
            raise _refused(metric, "its samples are numbers, not yes or no")
    same = on_the_same_samples(of_all, known)
    if isinstance(same, str):
        raise _refused(metric, f"not paired: {same}")
    said, truth = (each.terms() > 0 for each in same)
    if min(truth.sum(), (~truth).sum()) < FEWEST:
        raise _refused(metric, f"people said yes of {truth.sum():,} and no of {(~truth).sum():,}: fewer than {FEWEST}")
    every = of_all.terms() > 0
    counts = every.sum(), len(every), said[truth].sum(), truth.sum(), (~said[~truth]).sum(), (~truth).sum()
    share = JudgedShare(*map(float, counts))
    if math.isnan(share.value):
        raise _refused(metric, "a judge that is no better than chance")
    note = (
        f"corrected for a judge with sensitivity {said[truth].mean():.3f} and specificity "
        f"{1 - said[~truth].mean():.3f} on {len(truth):,} samples"
    )
    ends = share.interval(confidence_level)
    return _adjusted(of_all.value, share.value, *ends, len(every), note, confidence_level)


def _found(report: Report, metric: str) -> MeasuredValue:
    found = metric_of(report, metric)
    if isinstance(found, str):
        raise _refused(metric, found)
    if found[0].stopped:
        raise _refused(metric, "the run ended early by what it showed")
    return found[1]


def _why_no_mean(measured: MeasuredValue) -> str:
    if not measured.has_terms() or measured.value.denominator or measured.value.scale:
        return "it is no mean over samples that were kept"
    if are_clustered(measured):
        return "its samples are in clusters"
    return "" if is_finite(measured) else NOT_FINITE


def _refused(metric: str, got: str) -> ConfigError:
    do = "Keep per-sample values of a mean over independent samples, and of enough of them"
    return ConfigError(describe(metric, got, "a mean whose variance can be reduced", do))


def _adjusted(
    value: Value, mean: float, lower: float, upper: float, count: int, note: str, confidence_level: float
) -> Value:
    """A value that is no longer the mean of its column."""
    return replace(
        value,
        value=mean,
        lower=lower,
        upper=upper,
        count=count,
        note=note,
        confidence_level=confidence_level,
        numerator="",
        denominator="",
        replicates=None,
        safe_lower=None,
        safe_upper=None,
    )
