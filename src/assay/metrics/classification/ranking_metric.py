"""What metrics of rankings have in common, and an average of them over classes or labels."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor

from assay.errors import ConfigError, NoDataWarning, describe, warn
from assay.metrics.base import SHARE, Examples, Metric, number, vector
from assay.metrics.classification.stated_thresholds import rising_thresholds
from assay.stats.averaged_rankings import FEWEST, RankedValue, averaged_intervals
from assay.stats.intervals import Ends
from assay.tally.base import Tally
from assay.tally.scores import curves
from assay.tally.scores.curves import Array, BoundedEstimate, Ranking
from assay.tally.scores.labelled_scores import score_spec
from assay.tally.scores.scores import ScoreTally
from assay.tally.scores.threshold_counts import ThresholdCounts

EXACT_UP_TO = 1 << 20
"""Scores: 4 MiB of float32."""

Average = Literal["micro", "macro", "weighted"]
Rankings = tuple[Ranking, ...]


class Bounded(NamedTuple):
    """A value and two numbers between which the exact one lies."""

    value: Tensor
    lower: Tensor
    upper: Tensor


@dataclass(frozen=True, kw_only=True)
class RankingMetric(Metric):
    """A metric of scores and labels that is computed from rankings.

    Shapes:
        Binary, without `num_classes` and `num_labels`: `preds` are float scores of any shape, `target` is 0 or 1.
        Multiclass: `preds (N, C, ...)`, `target (N, ...)` in `0 ... C - 1`. Multilabel: both `(N, num_labels, ...)`.

    Raises:
        ConfigError: an argument that is out of range or unknown, or both `num_classes` and `num_labels`.
        InvalidValuesError: by `compute`, for NaN, a target out of range, a score outside [0, 1] without `logits=True`;
            a row of multiclass logits that has no softmax, because one is +inf or all are -inf.
    """

    family = "ranking"
    inputs = "labels"
    unchanged_by = frozenset({"increasing"})
    defined_for = ""  # `compute` itself says which class is missing

    num_classes: Annotated[int | None, "for multiclass data; each class is ranked against the rest."] = None
    num_labels: Annotated[int | None, "for multilabel data; each label is ranked by itself."] = None
    ignore_index: Annotated[int | None, "rows with this target are left out."] = None
    logits: Annotated[
        bool,
        "scores are any real numbers, otherwise they are in [0, 1]. Binary and multilabel logits are ranked as they "
        "are, multiclass ones by the log-odds of each class, `logit_c - logsumexp(the other logits)`: the order of the "
        "softmax, without its saturation. Thresholds are then logits or log-odds, whose sigmoid is the probability.",
    ] = False
    exact: Annotated[bool, "keep all scores, on disk if need be."] = False
    exact_up_to: Annotated[
        int,
        "how many scores are kept before they are counted in a histogram; 0 keeps none. Weighted scores are always "
        "kept.",
    ] = EXACT_UP_TO
    thresholds: Annotated[
        int | tuple[float, ...] | None,
        "count how many scores reach each of these probabilities, and nothing else: rising numbers in [0, 1], or how "
        "many evenly spaced ones. The value is then that of the points at these thresholds. With `logits=True` scores "
        "go through a sigmoid or softmax first. None uses every score.",
    ] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.thresholds is not None:
            object.__setattr__(self, "thresholds", rising_thresholds(self.thresholds))
            if self.exact or getattr(self, "bounds", False):
                got = "thresholds together with " + ("exact=True" if self.exact else "bounds=True")
                do = "Leave thresholds out to use every score"
                raise ConfigError(describe(type(self).__name__, got, "one of the two", do))
        self.tally(weighted=False)

    def tally(self, weighted: bool) -> Tally:
        data = score_spec(self.num_classes, self.num_labels, self.ignore_index, self.logits)
        if isinstance(self.thresholds, tuple):
            return ThresholdCounts(data, self.thresholds, weighted)
        return ScoreTally(data, None if self.exact else self.exact_up_to, weighted)

    @property
    def _single(self) -> bool:
        """Whether there is one ranking, and so one value."""
        return self.num_classes is None and self.num_labels is None

    def _of(self, groups: Sequence[int]) -> str:
        """Which classes or labels a message is about."""
        kind = "class" if self.num_labels is None else "label"
        return "" if self._single else f" of {kind} " + ", ".join(map(str, groups))

    def _columns(self, curves: Sequence[Sequence[Array]]) -> Iterator[Tensor | tuple[Tensor, ...]]:
        """The coordinates of curves, the last of which are the thresholds."""
        *rates, thresholds = (
            tuple(torch.from_numpy(np.ascontiguousarray(each)) for each in column)
            for column in zip(*curves, strict=True)
        )
        one = self._single or self.thresholds is not None
        for column in rates:
            yield column[0] if self._single else torch.stack(column) if one else column
        yield thresholds[0] if one else thresholds

    def _warn_of_missing(self, groups: Sequence[int], needs: str) -> None:
        """Warn that classes or labels read NaN."""
        if groups:
            got = f"no {needs.replace(' and ', ' or no ')}{self._of(groups)}"
            warn(
                describe(type(self).__name__, got, needs, "Add samples until that holds; the value is NaN"),
                NoDataWarning,
            )


@dataclass(frozen=True, kw_only=True)
class AveragedRankingMetric(RankingMetric):
    """A number of each ranking, averaged over classes or labels.

    Rounding: up to `exact_up_to` scores (and with `exact=True`) the value is that of exact arithmetic, rounded once.
    Beyond that, scores are counted in a histogram of 16.7 MB, and the value is between two certified bounds; it is
    exact there, too, for binary scores that float16 or bfloat16 can hold (`docs/ranking.md`).

    Returns:
        float64 of shape `()`, or `(classes,)` with `average=None`. NaN, with a `NoDataWarning`, where there are only
        positives or only negatives.
    """

    value_range = SHARE

    higher_is_better: ClassVar[bool | None] = True
    examples: ClassVar[Examples] = (
        {},
        {"bounds": True},
        {"exact_up_to": 16, "bounds": True},
        {"exact_up_to": 0, "bounds": True},
    )

    average: Annotated[
        Average | None,
        '"macro": the mean over the classes or labels that have a value, with a `NoDataWarning` that names those left '
        'out; "weighted": weighted by the positives; "micro" (multilabel): all labels in one ranking; None: one value '
        "each.",
    ] = "macro"
    bounds: Annotated[bool, "give a `Bounded(value, lower, upper)`; the bounds equal the value when it is exact."] = (
        False
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        allowed = ["macro", "weighted", None] + (["micro"] if self.num_labels is not None else [])
        if self.average not in allowed and not (self._single and self.average == "micro"):
            expected = "one of " + ", ".join(map(repr, allowed))
            do = (
                "With num_labels there is 'micro', too"
                if self.average == "micro"
                else "Pass average='macro' for the mean over classes"
            )
            raise ConfigError(describe("average", repr(self.average), expected, do))

    @abstractmethod
    def bounded_value(self, ranking: Ranking) -> BoundedEstimate:
        """The value of one ranking, and two numbers between which the exact one lies."""

    @property
    @abstractmethod
    def needs(self) -> str:
        """What a ranking must have for a value."""

    def compute(self, counts: Rankings) -> Tensor | Bounded:
        if self.average == "micro":
            counts = (curves.pooled(counts),)
        areas = [self.bounded_value(ranking) for ranking in counts]
        return self._value(areas, [1 if self.average == "macro" else ranking.num_positives for ranking in counts])

    def _value(self, areas: Sequence[BoundedEstimate], weights: Sequence[int]) -> Tensor | Bounded:
        """The value of rankings that have these areas, and these weights in an average."""
        each = self.average is None or len(areas) == 1
        chosen = areas if each else [_averaged(areas, weights)]
        missing = [k for k, area in enumerate(areas) if math.isnan(area.value)]
        if each or math.isnan(chosen[0].value):
            self._warn_of_missing(missing, self.needs)
        else:
            self._warn_of_left_out([k for k in missing if weights[k]])
        shaped: Callable[[list[float]], Tensor] = vector if self.average is None and not self._single else first_number
        if not self.bounds:
            return shaped([float(area.value) for area in chosen])
        return Bounded(*(shaped(list(column)) for column in zip(*map(_rounded, chosen), strict=True)))

    ranked_value: ClassVar[RankedValue]
    """Which value of rankings it is, where an average of them has an interval in closed form."""

    def interval_of_one(self, ranking: Ranking, confidence_level: float, safe: bool) -> Ends | None:
        """The interval in closed form of the value of one ranking."""
        return None

    @property
    def needs_many(self) -> bool:
        return not self._single

    def interval(self, counts: Rankings, confidence_level: float, rows: int) -> Ends | None:
        return self.intervals(counts, confidence_level, rows)[0]

    def safe_interval(self, counts: Rankings, confidence_level: float, rows: int) -> Ends | None:
        return self.intervals(counts, confidence_level, rows)[1]

    def intervals(self, counts: Rankings, confidence_level: float, rows: int) -> tuple[Ends | None, Ends | None]:
        if not self.closed_form:
            return None, None
        if self._single:
            if counts[0].num_positives + counts[0].num_negatives > rows:
                return None, None
            plain, safe = (self.interval_of_one(counts[0], confidence_level, safe) for safe in (False, True))
            return plain, safe
        samples = [self.ranked_samples(each) for each in counts if each.samples is not None]
        if len(samples) < len(counts) or len(samples[0][0]) > rows:
            return None, None
        assert self.average is not None  # of a metric with a closed form
        return averaged_intervals(samples, self.ranked_value, confidence_level, average=self.average) or (None, None)

    def ranked_samples(self, ranking: Ranking) -> tuple[Array, ...]:
        """What `averaged_intervals` needs of the samples of a ranking, which are kept."""
        assert ranking.samples is not None
        return ranking.samples()

    def without_interval(self, counts: Rankings) -> str:
        if self._single:
            return "fewer than two positives or negatives"
        few = f"a class has fewer than {FEWEST} positives or negatives"
        return f"{few}, all values are 1, or there are too many scores to keep"

    def _warn_of_left_out(self, groups: Sequence[int]) -> None:
        """Warn that an average is over fewer classes or labels than there are."""
        if groups:
            got = f"no {self.needs.replace(' and ', ' or no ')}{self._of(groups)}"
            do = "The average leaves them out; average=None gives one value for each"
            warn(describe(type(self).__name__, got, f"{self.needs} of each", do), NoDataWarning)


def _averaged(areas: Sequence[BoundedEstimate], weights: Sequence[int]) -> BoundedEstimate:
    """The exact weighted mean of the areas that there are."""
    some = [(area, weight) for area, weight in zip(areas, weights, strict=True) if not math.isnan(area.value)]
    total = sum(weight for _, weight in some)
    if not total:
        return curves.NOTHING

    def mean(k: int) -> Fraction:
        return sum((Fraction(area[k]) * weight for area, weight in some), Fraction()) / total

    if all(area.value is area.lower is area.upper for area, _ in some):
        return BoundedEstimate(*[mean(0)] * 3)
    return BoundedEstimate(*map(mean, range(3)))


def first_number(values: Sequence[float]) -> Tensor:
    return number(values[0])


def _rounded(area: BoundedEstimate) -> tuple[float, float, float]:
    """The value to the nearest float, and the bounds outwards, unless they are the value."""
    value = float(area.value)
    if math.isnan(value) or area.lower == area.upper:
        return value, value, value
    return value, _down(area.lower), -_down(-area.upper)


def _down(value: Fraction | float) -> float:
    """The largest float that is not above."""
    near = float(value)
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)
