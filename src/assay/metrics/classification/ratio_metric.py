"""The metrics that are a quotient of outcomes: one class reads the `Ratio` that each of them states."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isnan, nan
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, GroupCounts, number, vector
from assay.metrics.classification.label_metrics import (
    ANSWERS,
    Answers,
    Average,
    AverageField,
    LabelMetric,
    Outcomes,
    TopKField,
    averaged,
    averages,
    outcomes_with_data,
)
from assay.metrics.classification.ratio import LARGEST_DENOMINATOR, OutcomeWeights, Ratio
from assay.metrics.classification.samplewise import ONE, MultidimField, SampleShares, sample_means
from assay.metrics.per_sample import SampleTerms
from assay.stats.intervals import Ends, clopper_pearson, few_of_a_kind, on_logit_scale, wilson
from assay.stats.linear import FEWEST_OF_CLASS
from assay.tally.base import Batch, State, Tally
from assay.tally.labels.confusion import ClassTotals, Confusion, Counts
from assay.tally.sums.row_sums import RowSums, RowTotals

_OF_MATRIX = "logit interval of the confusion matrix"
FEWEST_OF_CLASS_FOR_INTERVAL = 10
"""Samples of each class, below which an average over classes has no interval from the confusion matrix."""


@dataclass(frozen=True, kw_only=True)
class RatioMetric(LabelMetric):
    """A metric that is a quotient of outcomes, for each class or averaged over them.

    A metric states its `ratio`; its value is then exact, and no other class derives from it. It has no interval in
    closed form and no per-sample values, and neither high nor low values are better, until it states that as well. What
    is stated of the ratio and is false raises when the class is made, or the metric where fields are among its weights.
    A field that a metric does not offer is declared as a `ClassVar`.

    Attributes:
        ratio: what is divided, of one class.
        multiclass_ratio: the same for multiclass data, where it is another one.
        share_of_samples: of one class, the share of some samples that the ratio is or is an increasing function of:
            the interval of binary data is then Wilson's, or this function of it.
        samples_of_class: of one class, the names in `ANSWERS` of what is divided for each sample; the second is empty
            where all samples count. Both empty: there are no values of single samples.
        pooled: which share of the samples pooled classes have, "correct" or "wrong"; empty where it is none.
        predictions_of_ignored: whether a prediction counts as a false positive of the class that is ignored.

    Returns:
        float64, shape `()`, or `(C,)` or `(num_labels,)` with `average=None`. 0 / 0 is `zero_division` for a class with
        data, NaN without. If `ignore_index` is a class, averages over classes leave it out, and its own value is NaN.

    Raises:
        ConfigError: arguments that contradict each other, an unknown average, a class count below 2.
        InvalidValuesError: by `compute`, if there was a NaN, a label out of range, or a score outside [0, 1] without
            `logits=True`.
    """

    multiclass_ratio: ClassVar[Ratio | None] = None
    share_of_samples: ClassVar[Ratio | None] = None
    samples_of_class: ClassVar[tuple[str, str]] = ("", "")
    pooled: ClassVar[str] = ""
    predictions_of_ignored: ClassVar[bool] = True

    top_k: TopKField = 1
    average: AverageField = "macro"
    multidim_average: MultidimField = "global"
    only_classes: Annotated[
        tuple[int, ...] | None,
        "only these classes or labels are averaged, or have a value with `average=None`, in this order, which is "
        "`labels` of scikit-learn; all samples count. None takes all of them.",
    ] = None
    zero_division: Annotated[
        float,
        "what 0 / 0 is of a class with data, also in a single sample: 0, 1, or NaN, which averages leave out.",
    ] = 0.0

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__mro__[1:]:
            if base is not RatioMetric and "ratio" in vars(base):
                do = "Derive it from RatioMetric, and state its ratio"
                raise ConfigError(describe(cls.__name__, f"a subclass of {base.__name__}", "a class of its own", do))
        ratios = [ratio for ratio in (vars(cls).get("ratio"), cls.multiclass_ratio) if ratio is not None]
        for ratio in ratios:
            cls._check_ratio(ratio)
        if "ratio" in vars(cls) and not any(isinstance(ratio, property) or ratio.names for ratio in ratios):
            _check_statements(cls, *(ratio.weights() for ratio in (ratios[0], ratios[-1])))

    def __post_init__(self) -> None:
        if str(self.average) == "samples":
            do = "Pass average='micro' and multidim_average='samplewise', which is the mean over samples"
            raise ConfigError(describe("average", "'samples'", "'micro', 'macro', 'weighted' or None", do))
        if isinstance(self.only_classes, Iterable):
            object.__setattr__(self, "only_classes", tuple(self.only_classes))
        super().__post_init__()
        if self.zero_division not in (0, 1) and not isnan(self.zero_division):
            do = "Give 0 or 1, or NaN to leave such classes out of averages"
            raise ConfigError(describe("zero_division", self.zero_division, "0, 1 or NaN", do))
        if self.only_classes is not None:
            self._check_classes(self.only_classes)
        self._check_ratio(self.ratio)
        _check_statements(type(self), *map(self._weights, (self.ratio, self.multiclass_ratio or self.ratio)))
        if self.multidim_average == "samplewise" and self.value_range != SHARE:
            got, do = f"'samplewise' for {self.ratio}", "Leave multidim_average out"
            raise ConfigError(describe("multidim_average", got, "'global', as the ratio is no share", do))

    def _check_classes(self, classes: Any) -> None:
        size, name = self.num_classes or self.num_labels, "only_classes"
        if size is None or self.multidim_average == "samplewise":
            what = "binary data" if size is None else "multidim_average='samplewise'"
            do = f"Leave {name} out, or pass num_classes or num_labels and multidim_average='global'"
            raise ConfigError(describe(name, f"{classes} with {what}", "classes or labels, to average over", do))
        known = isinstance(classes, tuple) and all(each in range(size) for each in classes)
        if not known or not classes or len(set(classes)) < len(classes):
            do = f"Give each class once, as {name}=(0, {size - 1})"
            raise ConfigError(describe(name, classes, f"different numbers from 0 to {size - 1}, one or more", do))

    @property
    @abstractmethod
    def ratio(self) -> Ratio:
        """What is divided, of one class."""

    @property
    def outcome_weights(self) -> OutcomeWeights:
        """What outcomes are multiplied with, for data of this task."""
        several = self.multiclass_ratio if self.num_classes is not None else None
        return self._weights(several or self.ratio)

    @property
    def value_range(self) -> tuple[float, float]:  # type: ignore[override]
        """The least and the largest number that a value can have."""
        return self.outcome_weights.value_range

    @property
    def unweighted(self) -> float:
        """What the average weighted by targets is of labels that no sample has."""
        return self.zero_division

    @property
    def class_average(self) -> Average | None:
        """How classes are averaged; None for binary data, which has one."""
        return None if self.binary else self.average

    def divided(self, of: Outcomes) -> Outcomes:
        """The outcomes that are divided."""
        ignored = self.num_classes is not None and not self.predictions_of_ignored
        return replace(of, fp=of.fp * of.present) if ignored else of

    def outcomes(self, counts: Counts | ClassTotals) -> Outcomes:
        return self._chosen(super().outcomes(counts))

    def _chosen(self, of: Outcomes) -> Outcomes:
        """The outcomes that are divided, of the classes that are asked for."""
        of = self.divided(of)
        return of if self.only_classes is None else of.of(self.only_classes)

    def tally(self, weighted: bool) -> Tally:
        samplewise = self.multidim_average == "samplewise"
        return RowSums(SampleShares(self), weighted) if samplewise else super().tally(weighted)

    def reading(self, tally: Tally) -> Callable[[State], Tensor | None] | None:
        if self.multidim_average == "samplewise" or not isinstance(tally, Confusion) or tally.weighted:
            return None
        plain, multiclass, divide = tally.plain_outcomes, self.num_classes is not None, self._averages()

        def read(state: State) -> Tensor | None:
            table = plain(state, multiclass)
            if table is None:
                return None
            tp, fp, tn, fn, _ = table.numpy().astype(object)
            values = divide(self._chosen(outcomes_with_data(tp, fp, fn, tn, multiclass, self.ignore_index)))
            return None if any(map(isnan, values)) else self._value(values)

        return read

    def compute(self, counts: Any) -> Tensor:
        is_by_sample = isinstance(counts, RowTotals)
        return self._value(sample_means(counts) if is_by_sample else self._averages()(self.outcomes(counts)))

    def _averages(self) -> Callable[[Outcomes], list[float]]:
        """What gives the quotients of outcomes: of all classes, or one average."""
        weights, average = self.outcome_weights, self.class_average
        undefined, unweighted = self.zero_division, self.unweighted
        return lambda of: averaged(weights, of, average, undefined, unweighted)

    def _value(self, values: Sequence[float]) -> Tensor:
        return vector(values) if self.average is None and not self.binary else number(values[0])

    def classes_without_targets(self, counts: Any) -> frozenset[int]:
        if self.class_average != "macro" or isinstance(counts, RowTotals):
            return frozenset()
        support = self.outcomes(counts).support
        classes = self.only_classes or range(len(support))
        return frozenset(each for each, size in zip(classes, support, strict=True) if not size)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.multidim_average == "samplewise":
            return self._terms_of_rows(SampleShares(self), batch)
        if batch.needed_target.ndim > (1 if self.num_labels is None else 2):
            return None
        if self.num_classes is not None:
            return self.answers(batch).share(self.pooled) if self._pools else None
        if self.num_labels is not None and not self._averages_samples():
            return None
        return self.terms_of_class(self.answers(batch))

    def terms_of_class(self, of: Answers) -> SampleTerms | None:
        """What each sample contributes to the value of one class, or of pooled labels; None where not stated."""
        return of.share(*self.samples_of_class) if any(self.samples_of_class) else None

    def _terms_of_rows(self, shares: SampleShares, batch: Batch) -> SampleTerms | None:
        if shares.width > 1:
            return None
        values, counts = (each.view(-1) for each in shares(batch).values)
        return SampleTerms.of(f"value of {self!r}", values / ONE, f"has a value of {self!r}", counts)

    @property
    def closed_form(self) -> str:
        one = self.share_of_samples is not None if self.num_classes is None else self._pools
        is_stated = self.share_of_samples is not None or bool(self.pooled)
        if (one and self.num_labels is None and self.multidim_average == "global") or (
            is_stated and self._follows_from_right
        ):
            return "Wilson's interval"
        return _OF_MATRIX if is_stated and self.is_smooth and self.value_range == SHARE else ""

    @property
    def _counts_plainly(self) -> bool:
        """Whether all samples of several classes count, with one prediction each, in all classes."""
        every = self.ignore_index is None and self.only_classes is None
        return self.num_classes is not None and every and self.top_k == 1

    @property
    def is_smooth(self) -> bool:
        """Whether it is an average over classes, which follows from the confusion matrix."""
        over_all = not self._pools and self.multidim_average == "global"
        return self._counts_plainly and self.average in ("macro", "weighted") and over_all

    @property
    def needs_many(self) -> bool:
        return self.is_smooth

    def replicates(
        self, groups: GroupCounts, draws: NDArray[np.int64], *, to_first_order: bool
    ) -> NDArray[np.float64] | None:
        found = self._first_order_replicates(groups, draws) if to_first_order and self.is_smooth else None
        return self._exact_replicates(groups, draws) if found is None else found

    def _exact_replicates(self, groups: GroupCounts, draws: NDArray[np.int64]) -> NDArray[np.float64] | None:
        average = "micro" if self.binary else self.average
        is_own = type(self).compute is RatioMetric.compute and self.multidim_average == "global"
        tables = groups.tables_of_draws(draws) if is_own and average is not None else None
        if average is None or tables is None:
            return None
        weights, found = self.outcome_weights, []
        for counts in tables:
            found += averages(weights, self.outcomes(counts), average, self.zero_division, self.unweighted)
        return np.array(found, np.float64)

    def _first_order_replicates(self, groups: GroupCounts, draws: NDArray[np.int64]) -> NDArray[np.float64] | None:
        counts = groups.whole
        if not isinstance(counts, Counts) or int(self.outcomes(counts).support.min()) < FEWEST_OF_CLASS:
            return None
        matrix = counts.values[0].astype(np.float64)
        value, slopes = self._slopes(matrix)
        if math.isnan(value):
            return None
        return np.append(float(self.compute(counts)), value + draws[1:] @ _moves(groups, draws.shape[1], slopes))

    def _slopes(self, matrix: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """An average over classes, and how far a sample in each cell of the matrix moves it; NaN for 0 / 0."""
        size, hits = matrix.sum(), matrix.diagonal()
        fn, fp = matrix.sum(1) - hits, matrix.sum(0) - hits
        outcomes = np.array([hits, fp, fn, size - hits - fp - fn])
        weights = self.outcome_weights
        above, below = (np.array(each, np.float64) for each in (weights.above, weights.below))
        with np.errstate(all="ignore"):
            total = below @ outcomes
            ratios = (above @ outcomes) / total
            share = matrix.sum(1) / size if self.average == "weighted" else np.full(len(matrix), 1 / len(matrix))
            moves = share * (above[:, None] - ratios * below[:, None]) / total  # of each outcome, in each class
        tp, fp, fn = moves[:3] - moves[3]
        slopes = moves[3].sum() + fn[:, None] + fp
        np.fill_diagonal(slopes, moves[3].sum() + tp)
        value = float(share @ ratios)
        if self.average == "weighted":
            slopes += ((ratios - value) / size)[:, None]
        return value, slopes

    def _interval_of_matrix(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        """The interval of an average over classes, by the delta method on the logit scale.

        Half a sample is added to each cell of the diagonal, and one, shared out, to each row, so that a class without
        mistakes is no proof that there are none.

        Source: K. Takahashi et al., Confidence interval for micro-averaged F1 and macro-averaged F1 scores, Applied
        Intelligence 52 (2022).
        """
        if not isinstance(counts, Counts) or counts.values.sum() > rows:
            return None
        if int(self.outcomes(counts).support.min()) < FEWEST_OF_CLASS_FOR_INTERVAL:
            return None
        counted, classes = counts.values[0].astype(np.float64), counts.values.shape[1]
        matrix = counted + 0.5 * np.eye(classes) + 0.5 / classes
        value, slopes = self._slopes(matrix)
        size = matrix.sum()
        variance = float(np.sum(matrix * slopes**2) - np.sum(matrix * slopes) ** 2 / size) * size / (size - 1)
        ends, plain = on_logit_scale(value, math.sqrt(max(0.0, variance)), confidence_level), self._slopes(counted)[0]
        return None if ends is None or math.isnan(plain) else (min(ends[0], plain), max(ends[1], plain))

    def without_interval(self, counts: Any) -> str:
        if self.is_smooth:
            return f"a class has fewer than {FEWEST_OF_CLASS_FOR_INTERVAL} samples"
        return super().without_interval(counts)

    def interval(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        if self.is_smooth:
            return self._interval_of_matrix(counts, confidence_level, rows) if self.closed_form else None
        return self._interval_of_share(counts, confidence_level, rows, wilson) if self.closed_form else None

    def safe_interval(self, counts: Counts | ClassTotals, confidence_level: float, rows: int) -> Ends | None:
        if not self.closed_form or not self._follows_from_right:
            return None
        return self._interval_of_share(counts, confidence_level, rows, clopper_pearson)

    def caution(self, counts: Counts | ClassTotals) -> str:
        return self.few_mistakes(counts) if self.is_smooth else few_of_a_kind(*self._share(counts))

    def _share(self, counts: Counts | ClassTotals) -> tuple[int, int]:
        """How many samples of how many are the share that decides over the value."""
        of = self.outcomes(counts).pooled()
        if self.share_of_samples is not None and self.num_classes is None:
            (hits,), (among,) = self.share_of_samples.weights()(of)
            return int(hits), int(among)
        hits, total = int(of.tp[0]), int(of.support[0])
        return total - hits if self.pooled == "wrong" else hits, total

    def _interval_of_share(
        self, counts: Counts | ClassTotals, confidence_level: float, rows: int, of_share: Callable[..., Ends]
    ) -> Ends | None:
        """The interval of the share of samples that decides over the value, as one of the value."""
        of = self.outcomes(counts).pooled()
        if of.total[0] > rows if self.num_classes is None else of.support[0] > rows:
            return None
        ends = of_share(*self._share(counts), confidence_level)
        if self.share_of_samples is not None and self.num_classes is None:
            function = self.outcome_weights.function_of(self.share_of_samples.weights())
            assert function is not None, "it was checked"
            a, b, c, d = function
            lower, upper = ((a * end + b) / (c * end + d) if c * end + d else inf for end in ends)
            return lower, upper
        if self._follows_from_right:
            lower, upper = sorted(map(self._of_right, ends))
            return lower, upper
        return ends

    @property
    def _follows_from_right(self) -> bool:
        """Whether classes are pooled, but not to a share of all samples: the value is a function of the share right."""
        if not self._counts_plainly or self.average != "micro" or self._pools or self.multidim_average != "global":
            return False
        return self._of_right(0.0) != self._of_right(1.0)

    def _of_right(self, share: float) -> float:
        """The value of pooled classes where a share of the samples is right.

        A wrong sample is a false negative of one class, a false positive of another, and a true negative of the rest.
        """
        assert self.num_classes is not None, "of several classes"
        outcomes = share, 1 - share, 1 - share, self.num_classes - 2 + share
        above, below = (
            sum(float(weight) * each for weight, each in zip(weights, outcomes, strict=True))
            for weights in (self.outcome_weights.above, self.outcome_weights.below)
        )
        return above / below if below else nan

    @property
    def _pools(self) -> bool:
        """Whether the value of several classes is a share of all samples."""
        weighted = self.average == "weighted" and self.outcome_weights.of_support
        return bool(self.pooled) and self.only_classes is None and (self.average == "micro" or weighted)

    def _averages_samples(self) -> bool:
        """Whether the average over labels is one over samples: when pooled, or when all labels have as many samples."""
        if self.only_classes is not None:
            return False
        is_mean = bool(self.samples_of_class[0]) and not self.samples_of_class[1]
        return self.average == "micro" or (self.average == "macro" and is_mean and self.ignore_index is None)

    def _weights(self, ratio: Ratio) -> OutcomeWeights:
        return ratio.weights(self, LARGEST_DENOMINATOR if self.multidim_average == "samplewise" else 0)

    @classmethod
    def _check_ratio(cls, ratio: object) -> None:
        if isinstance(ratio, property):
            return  # known of each metric
        if not isinstance(ratio, Ratio):
            do = "Write ratio = Ratio('tp', 'tp + fp')"
            raise ConfigError(describe(f"{cls.__name__}.ratio", ratio, "a Ratio", do))
        for name in ratio.names:
            if name not in cls.arguments and not hasattr(cls, name):
                do = "Add the field, or write a number"
                raise ConfigError(describe(str(ratio), repr(name), f"a field of {cls.__name__}", do))


def _moves(groups: GroupCounts, count: int, slopes: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far the samples of each of so many groups move the value."""
    tables = groups.tables_of_draws(np.eye(count, dtype=np.int64))
    if tables is None:
        return np.array([float(np.sum(slopes * each.values[0])) for each in groups])
    return np.concatenate([(slopes * each.values[:, 0]).reshape(len(each.values), -1).sum(1) for each in tables])


@lru_cache
def _check_statements(kind: type[RatioMetric], of_class: OutcomeWeights, of_classes: OutcomeWeights) -> None:
    """Raise where what a class states of its ratio is not true."""
    share, samples = kind.share_of_samples, kind.samples_of_class
    known = samples[0] in ANSWERS and samples[1] in (*ANSWERS, "")
    holds = {
        "share_of_samples": share is None or of_class.function_of(share.weights()) is not None,
        "samples_of_class": not any(samples) or (known and of_class.is_quotient(*map(_of_each_outcome, samples))),
        "pooled": kind.pooled in ("", of_classes.pooled),
    }
    for name in (name for name, true in holds.items() if not true):
        weights, do = of_classes if name == "pooled" else of_class, f"Leave {name} out: nothing is claimed without it"
        raise ConfigError(describe(f"{kind.__name__}.{name}", getattr(kind, name), f"what is true of {weights}", do))


def _of_each_outcome(name: str) -> list[float]:
    """The term of that name in `ANSWERS`, of a sample that is `tp`, `fp`, `fn` and `tn`."""
    predicted = torch.tensor([1, 1, 0, 0], device="cpu")
    target = torch.tensor([1, 0, 1, 0], device="cpu")
    return [float(each) for each in ANSWERS[name](predicted, target)] if name else [1.0] * 4
