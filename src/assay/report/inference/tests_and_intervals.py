"""What samples say of one value, and of the difference of two: the test and the interval that fit what is stored."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from assay.report.inference.clustered_inference import interval_of_clusters, paired_clusters, unpaired_clusters
from assay.report.inference.clusters import are_clustered
from assay.report.inference.evidence import (
    MEAN,
    SHARE_INTERVAL,
    SHARES_INTERVAL,
    UP_TO,
    UP_TO_IN_SLICES,
    Evidence,
    Shares,
    differences_of,
    joined_risks,
    none_if_nan,
    paired_counts,
    shares_of,
)
from assay.report.inference.measured_value import MeasuredValue
from assay.report.inference.pairing import have_equal_inputs, pair
from assay.report.inference.spread import (
    NOT_FINITE,
    ROUNDING,
    are_alike,
    is_finite,
    spread_of_pairs,
    spread_of_two,
    spread_of_two_shares,
    standard_error,
    why_no_error,
)
from assay.report.per_sample.packed_array import Array
from assay.report.per_sample.resampling import named_clusters, why_not_alike
from assay.report.per_sample.samples import is_known_to_be_the_same
from assay.stats import effect_sizes, hypothesis_tests
from assay.stats.bootstrap import (
    BIAS,
    BIAS_OF_PAIRS,
    LEAST,
    paired_bootstrap,
    poisson_draws,
    replicate_error,
    replicate_skewness,
)
from assay.stats.distributions import normal_quantile, normal_two_sided
from assay.stats.intervals import (
    FEWEST,
    clopper_pearson,
    few_of_a_kind,
    mean_interval,
    risky_end,
    risky_end_of_skewness,
    skewed_ends,
    wilson,
)
from assay.stats.moments import SampleMoments
from assay.stats.paired_shares import paired_proportions, paired_ratio
from assay.stats.power import Spread
from assay.stats.scales import SCALES

BIASED = "few samples give higher values, to the worse one most: the difference may be larger"


def interval_of(measured: MeasuredValue, confidence_level: float, *, safe: bool = True) -> Evidence:
    """The interval of one value: from its samples, else the stored one where it has the level asked for.

    Args:
        measured: the value.
        confidence_level: the confidence level.
        safe: as gates take it, so that neither end misses more often than its level says; else Wilson's interval of a
            share of samples.

    Returns:
        The interval and how it was found, or no interval and why.

    Example:
        >>> from assay.report import Samples, Value
        >>> samples = Samples.pack(range(10), {"correct": [True] * 9 + [False]})
        >>> found = interval_of(MeasuredValue(Value("accuracy", 0.9, numerator="correct"), samples), 0.95)
        >>> round(found.lower, 3), found.method
        (0.555, 'Clopper-Pearson interval')
    """
    value = measured.value
    if measured.has_terms() and value.scale:
        return _on_scale(interval_of(measured.of_mean(), confidence_level, safe=safe), value.scale)
    if measured.has_terms() and are_clustered(measured):
        return interval_of_clusters(measured, confidence_level, safe)
    if measured.has_terms():
        share = measured.share()
        if share is None:
            return _interval_of_terms(measured, confidence_level)
        successes, count = int(share[0].sum()), int(share[1].sum())
        share_ends = (clopper_pearson if safe else wilson)(successes, count, confidence_level)
        note = "" if safe else few_of_a_kind(successes, count)
        return Evidence(*share_ends, method=SHARE_INTERVAL[safe], note=note)
    if value.lower is None or value.upper is None:
        return Evidence(note=f"neither samples nor an interval are stored{f' ({value.note})' if value.note else ''}")
    if math.isnan(value.lower) or math.isnan(value.upper):
        return Evidence(note="the stored interval is undefined")
    if not value.lower <= value.value <= value.upper:
        return Evidence(note=f"the stored interval [{value.lower:g}, {value.upper:g}] does not contain the value")
    if value.lower == value.upper:
        return Evidence(note="the stored interval is a point, which says nothing of other samples")
    if value.confidence_level is None:
        return Evidence(note="the level of the stored interval is not known")
    if value.confidence_level < confidence_level:
        return Evidence(
            note=f"the stored interval is of confidence level {value.confidence_level:g}, not {confidence_level:g}"
        )
    method = f"stored interval of confidence level {value.confidence_level:g}"
    ends = {"lower": (value.lower, value.safe_lower), "upper": (value.upper, value.safe_upper)}
    risky = [name for name, (_, safe) in ends.items() if safe is not None and math.isinf(safe)]
    lower, upper = (end if safe is None or name in risky else safe for name, (end, safe) in ends.items())
    both = len(risky) > 1 or _is_few(value.count)
    return Evidence(lower, upper, method=method, risky="both" if both else "".join(risky))


def _on_scale(of_mean: Evidence, scale: str) -> Evidence:
    """The interval of a function of a mean, from that of the mean."""
    if of_mean.lower is None or of_mean.upper is None:
        return of_mean
    lower, upper = SCALES[scale].ends(of_mean.lower, of_mean.upper)
    method = f"{of_mean.method} ({scale} of both ends)"
    return replace(of_mean, lower=lower, upper=upper, method=method, risky=SCALES[scale].end(of_mean.risky))


def _is_few(count: int | None) -> bool:
    return count is not None and count < FEWEST


def _interval_of_terms(measured: MeasuredValue, confidence_level: float) -> Evidence:
    if measured.is_large:
        return _interval_of_many(measured, confidence_level)
    terms = measured.terms()
    if len(terms) < 2 or not np.isfinite(terms).all():
        return Evidence(note="there are fewer than two samples, or some are not finite")
    if are_alike(terms):
        return Evidence(note="all samples contribute the same, which says nothing of others")
    count = measured.effective_count()
    lower, upper = mean_interval(terms, confidence_level, count)
    return Evidence(lower, upper, method=MEAN, risky=risky_end(terms, count))


def _interval_of_many(measured: MeasuredValue, confidence_level: float) -> Evidence:
    """`_interval_of_terms` of more samples than should be in memory."""
    if not is_finite(measured):
        return Evidence(note="there are fewer than two samples, or some are not finite")
    moments = SampleMoments.of(measured.term_chunks)
    if moments.largest - moments.least <= ROUNDING * max(abs(moments.least), abs(moments.largest)):
        return Evidence(note="all samples contribute the same, which says nothing of others")
    count = measured.effective_count()
    ends = skewed_ends(moments.mean, moments.error, moments.skewness, count, confidence_level)
    return Evidence(*ends, method=MEAN, risky=risky_end_of_skewness(moments.skewness, count))


def difference(
    a: MeasuredValue,
    b: MeasuredValue,
    confidence_level: float = 0.95,
    seed: int = 0,
    whole: Array | str | None = None,
    *,
    equal: str = "",
    safe: bool = False,
) -> Evidence:
    """What is known of the difference of two values, the second minus the first.

    Paired by sample where that can be done; else unpaired, with the reason as note. The difference of equal inputs is 0
    exactly. The p is below ``1 - confidence_level`` where the interval leaves out 0, and nowhere else (see
    `assay.stats.hypothesis_tests.agree`).

    Args:
        a: the first, the baseline.
        b: the second.
        confidence_level: the confidence level.
        seed: where random numbers start.
        whole: what `align` says of all samples of both, where that is known.
        equal: `REPORT` where both are of the same report, `SAMPLES` where all that was stored of each sample is the
            same (see `have_equal_samples`), else empty.
        safe: as gates take it, which read the interval alone: neither end of two shares of other samples misses more
            often than its level says.

    Example:
        >>> from assay.report import Samples, Value
        >>> of = lambda *right: Samples.pack(range(len(right)), {"correct": np.array(right, dtype=bool)})
        >>> a, b = (MeasuredValue(Value("accuracy", 0.5, numerator="correct"), of(1, 0, 1, 0)) for _ in range(2))
        >>> difference(a, b).p
        1.0
    """
    found = _evidence(a, b, confidence_level, seed, whole, equal, safe)
    return found if safe else found.agreeing(confidence_level)


def _evidence(
    a: MeasuredValue,
    b: MeasuredValue,
    confidence_level: float,
    seed: int,
    whole: Array | str | None,
    equal: str,
    safe: bool,
) -> Evidence:
    """A test and an interval of the difference, which may say different things."""
    if not math.isfinite(a.value.value) or not math.isfinite(b.value.value):
        return Evidence(note="undefined or infinite on one side")
    if have_equal_inputs(a, b, whole, equal):
        return Evidence(0.0, 0.0, 1.0, method="equal inputs", paired=True)
    if not a.has_terms() or not b.has_terms():
        why = _why_not_resampled_alike(a, b)
        return _of_intervals(a, b, why, confidence_level, safe) if why else _of_replicates(a, b, confidence_level, safe)
    assert a.samples is not None, a.value.name
    assert b.samples is not None, b.value.name
    if not is_finite(a) or not is_finite(b):
        return Evidence(note=NOT_FINITE)
    position = pair(a, b, whole)
    shares = shares_of(a, b)
    is_clustered = are_clustered(a) or are_clustered(b)
    if isinstance(position, str) and is_clustered:
        evidence = unpaired_clusters(a, b, shares, confidence_level, safe)
        return replace(evidence, note="; ".join(filter(None, (f"not paired: {position}", evidence.note))))
    if isinstance(position, str):
        evidence = _unpaired_shares(shares, confidence_level, a.factor, safe) or _unpaired(a, b, confidence_level)
        return replace(evidence, note="; ".join(part for part in (f"not paired: {position}", evidence.note) if part))
    of_shares = None if is_clustered else _paired_shares(shares, position, confidence_level, a.factor)
    paired = paired_clusters(a, b, shares, position, confidence_level, seed, safe) if is_clustered else of_shares
    evidence = paired or _paired(a, b, position, confidence_level, seed)
    if is_known_to_be_the_same(a.samples, b.samples):
        return evidence
    alone = "paired by ids alone: no targets, no name of the data"
    return replace(evidence, note=f"{evidence.note}; {alone}" if evidence.note else alone)


def _paired_shares(shares: Shares, position: Array, confidence_level: float, factor: float) -> Evidence | None:
    """Two shares among the same samples, the first times a factor; None where they are none."""
    if (counts := paired_counts(shares, position)) is None:
        return None
    down, up, both, n = (int(each.sum()) for each in (counts.down, counts.up, counts.both, counts.among))
    if factor != 1:
        share = (both + down) / n
        lower, upper = (share * (end - factor) for end in paired_ratio(both, down, up, n, confidence_level))
        return Evidence(lower, upper, method="score interval of the ratio", paired=True)
    lower, upper = paired_proportions(down, up, n, confidence_level)
    p, odds = hypothesis_tests.mcnemar(down, up), effect_sizes.odds_ratio(down, up)
    method = "McNemar mid-p, wider of Tango and Bonett-Price intervals"
    spread = spread_of_pairs(down, up, n)
    return Evidence(lower, upper, p, none_if_nan(odds), "odds ratio", method, paired=True, spread=spread)


def _unpaired_shares(shares: Shares, confidence_level: float, factor: float, safe: bool) -> Evidence | None:
    if shares is None:
        return None
    s1, n1, s2, n2 = (int(each.sum()) for share in shares for each in share)
    if not n1 or not n2:
        return Evidence(note="no samples on one side")
    p, (lower, upper) = hypothesis_tests.two_proportions(s1, n1, s2, n2, confidence_level, factor, safe=safe)
    if factor != 1:
        return Evidence(lower, upper, method=SHARES_INTERVAL[safe])
    effect = effect_sizes.cohens_h(s1 / n1, s2 / n2)
    method, spread = f"score test, {SHARES_INTERVAL[safe]}", spread_of_two_shares(s1, n1, s2, n2)
    return Evidence(lower, upper, p, effect, "Cohen's h", method, spread=spread)


def _paired(a: MeasuredValue, b: MeasuredValue, position: Array, confidence_level: float, seed: int) -> Evidence:
    if a.is_large and b.is_large:
        return _paired_of_many(a, b, position, confidence_level)
    first, second = a.terms().astype(np.float64), b.terms()[position].astype(np.float64)
    apart = second - first
    if len(apart) < 2:
        return Evidence(paired=True, note="there are fewer than two samples")
    p, test = hypothesis_tests.paired_test(apart, seed, UP_TO if a.members is None else UP_TO_IN_SLICES)
    if are_alike(apart, float(max(np.abs(first).max(), np.abs(second).max()))):
        note = "all samples differ by the same, which says nothing of others"
        return Evidence(p=p, method=test, paired=True, note=note if apart.any() else "no sample differs")
    count = min(a.effective_count(), b.effective_count())
    effect, risky = effect_sizes.cohens_dz(apart), risky_end(apart, count)
    return Evidence(
        *mean_interval(apart, confidence_level, count),
        p,
        effect,
        "Cohen's dz",
        f"{test}, {MEAN}",
        paired=True,
        risky=risky,
        spread=Spread(len(apart), float(apart.var(ddof=1))),
    )


def _paired_of_many(a: MeasuredValue, b: MeasuredValue, position: Array, confidence_level: float) -> Evidence:
    """`_paired` of more samples than should be in memory."""
    apart = SampleMoments.of(differences_of(a, b, position))
    p, test = hypothesis_tests.paired_t_of(apart.mean, apart.error, apart.count), "paired t"
    size = max(float(np.abs(chunk).max()) for each in (a, b) for chunk in each.term_chunks())
    if apart.largest - apart.least <= ROUNDING * size:
        differs = apart.least or apart.largest
        note = "all samples differ by the same, which says nothing of others" if differs else "no sample differs"
        return Evidence(p=p, method=test, paired=True, note=note)
    count = min(a.effective_count(), b.effective_count())
    ends = skewed_ends(apart.mean, apart.error, apart.skewness, count, confidence_level)
    effect, risky = apart.mean / apart.deviation, risky_end_of_skewness(apart.skewness, count)
    spread = Spread(apart.count, apart.deviation**2)
    return Evidence(*ends, p, effect, "Cohen's dz", f"{test}, {MEAN}", paired=True, risky=risky, spread=spread)


def _unpaired(a: MeasuredValue, b: MeasuredValue, confidence_level: float) -> Evidence:
    first, second = a.terms(), b.terms()
    if min(len(first), len(second)) < 2:
        return Evidence(note="there are fewer than two samples on one side")
    p, ends = hypothesis_tests.welch(first, second, confidence_level)
    effect = none_if_nan(effect_sizes.cohens_d(first, second))
    if are_alike(first) and are_alike(second):
        note = "all samples of a side contribute the same, which says nothing of others"
        return Evidence(p=p, effect=effect, scale="Cohen's d", method="Welch's test", note=note)
    error = math.hypot(*(float(each.std(ddof=1)) / math.sqrt(len(each)) for each in (first, second)))
    spread, method = spread_of_two(error, len(first), len(second)), "Welch's test and interval"
    return Evidence(*ends, p, effect, "Cohen's d", method, risky=_risky_of_two(a, b), spread=spread)


def _risky_of_two(a: MeasuredValue, b: MeasuredValue) -> str:
    """Of the second minus the first: what is risky at the upper end of the first is so at the lower of both."""
    return joined_risks(risky_end(a.terms(), a.effective_count()), risky_end(b.terms(), b.effective_count()))


def _why_not_resampled_alike(a: MeasuredValue, b: MeasuredValue) -> str:
    """Why two values cannot be paired replicate by replicate; empty where they can."""
    without = [
        side
        for each, side in ((a, "the baseline"), (b, "the run"))
        if each.value.replicates is None or each.resampling is None
    ]
    if without:
        if a.has_terms() != b.has_terms():
            side = "the run" if a.has_terms() else "the baseline"
            return f"{side} has no per-sample values (evaluate both with the same options)"
        has = "have" if len(without) > 1 else "has"
        do = "evaluate a data set, or with ids=, and with intervals; give the documents of a query as one row"
        return f"{' and '.join(without)} {has} no replicates ({do})"
    assert a.resampling is not None, a.value.name
    assert b.resampling is not None, b.value.name
    return why_not_alike(a.resampling, b.resampling)


def _of_replicates(a: MeasuredValue, b: MeasuredValue, confidence_level: float, safe: bool) -> Evidence:
    """Two values with the same resamples: the spread of their difference over the replicates."""
    assert a.value.replicates is not None, a.value.name
    assert b.value.replicates is not None, b.value.name
    assert a.resampling is not None, a.value.name
    assert b.resampling is not None, b.value.name
    count = min(len(a.value.replicates), len(b.value.replicates))  # the first draws are the same ones
    first, second = (each.factor * each.value.replicates.values[:count] for each in (a, b))  # type: ignore[union-attr]
    changes = second - first
    is_known = np.isfinite(changes)
    known, groups, apart = changes[is_known], a.resampling.filled, b.value.value - a.value.value
    note = "" if a.resampling.targets and b.resampling.targets else "paired by ids alone: no targets"
    of = f" of whole {named_clusters(a.resampling.cluster)}" if a.resampling.cluster else ""
    method = f"paired bootstrap: {count} draws of {groups} groups{of}, Student's interval"
    if len(known) < max(LEAST, count / 2):
        return Evidence(paired=True, note="most replicates are undefined on one side")
    if are_alike(known, max(abs(a.value.value), abs(b.value.value))):
        same = (
            "no replicate differs" if not apart else "all replicates differ by the same, which says nothing of others"
        )
        return Evidence(p=None if apart else 1.0, method=method, paired=True, note=same)
    skewness = replicate_skewness(known, poisson_draws(count, groups, a.resampling.seed)[is_known])
    lower, upper, p = paired_bootstrap(apart, known, groups, confidence_level, skewness)
    error, is_biased = replicate_error(known, groups)[0], a.value.biased_upwards or b.value.biased_upwards
    if is_biased:
        margin, note = BIAS_OF_PAIRS * error * safe, "; ".join(filter(None, (note, BIASED)))
        lower, upper = lower - margin, upper + margin
    few = a.resampling.filled if a.resampling.cluster else a.resampling.count
    risky = "both" if few < FEWEST else risky_end_of_skewness(skewness, groups)
    spread = Spread(few, error**2 * few)
    return Evidence(lower, upper, p, method=method, paired=True, note=note, risky=risky, spread=spread)


def _of_intervals(
    a: MeasuredValue, b: MeasuredValue, why_not_paired: str, confidence_level: float, safe: bool
) -> Evidence:
    """Two intervals as if they were of independent and normal values: the most that can be said without samples."""
    for each, side in ((a, "the baseline"), (b, "the run")):
        if why := why_no_error(each):
            return Evidence(note=f"not tested: {why} ({side})")
    errors, apart = (standard_error(a), standard_error(b)), b.value.value - a.value.value
    error = math.hypot(*errors)
    half = error * normal_quantile((1 + confidence_level) / 2)
    too_high = [BIAS * own * (safe and of.value.biased_upwards) for own, of in zip(errors, (a, b), strict=True)]
    ends = apart - half - too_high[1], apart + half + too_high[0]
    note = f"not paired: {why_not_paired}; intervals taken as normal and independent"
    note = f"{note}; {BIASED}" if a.value.biased_upwards or b.value.biased_upwards else note
    risky = "both" if _is_few(a.value.count) or _is_few(b.value.count) else ""
    method = "z test of two intervals"
    spread = spread_of_two(error, a.count, b.count) if a.count and b.count else None
    return Evidence(*ends, normal_two_sided(apart / error), method=method, note=note, risky=risky, spread=spread)
