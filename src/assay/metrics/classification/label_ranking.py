"""Metrics of how the scores of each row rank its labels, for data in which a row has several labels."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import NOT_NEGATIVE, SHARE, Examples, Metric
from assay.metrics.exact_arithmetic import means, result
from assay.metrics.per_sample import SampleTerms
from assay.tally.base import Batch, Tally
from assay.tally.scores.label_rankings import (
    Criterion,
    LabelCoverage,
    LabelPairsWrong,
    LabelPrecision,
    LabelRows,
    TopLabels,
)
from assay.tally.scores.labelled_scores import ScoreSpec, score_spec
from assay.tally.sums.polynomials import MEAN_OF_ROWS, QuotientOfSums
from assay.tally.sums.row_sums import RowSums, RowTotals


@dataclass(frozen=True)
class LabelRankingMetric(Metric):
    """The mean over rows of a number that depends on how the scores of the row rank its labels.

    Shapes: `preds` float scores and `target` 0 or 1, both `(N, num_labels, ...)`; weights `(N,)`.

    Returns:
        float64, shape `()`; NaN without data.

    Raises:
        ConfigError: `num_labels` is missing.
        InvalidValuesError: by `compute`, for NaN and for a target that is not 0 or 1.
    """

    family: ClassVar[str] = "ranking"
    inputs: ClassVar[str] = "labels"
    exact_terms: ClassVar[bool] = False
    row_name: ClassVar[str]
    term: ClassVar[type[LabelRows]]

    num_labels: Annotated[int | None, "how many labels each row has; it must be given."] = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_labels is None:
            raise ConfigError(describe("num_labels", None, "the number of labels", "Give the size of dimension 1"))
        self.tally(weighted=False)  # raises what it has to say

    @property
    def data(self) -> ScoreSpec:
        """How batches become rows of scores: any real numbers, as only their order counts."""
        return score_spec(None, self.num_labels, None, logits=True)

    @property
    def row(self) -> LabelRows:
        """What each row gives."""
        return self.term(self.data)

    def tally(self, weighted: bool) -> Tally:
        return RowSums(self.row, weighted)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if batch.needed_target.ndim != 2:
            return None
        return SampleTerms.of(self.row_name, self.row(batch).values[0].view(-1))

    @property
    def quotient_of_sums(self) -> QuotientOfSums:
        return MEAN_OF_ROWS

    def compute(self, counts: RowTotals) -> Tensor:
        return result(means(counts))


@dataclass(frozen=True)
class LabelOrderMetric(LabelRankingMetric):
    """A metric of the order of all labels of a row that are not ignored."""

    examples: ClassVar[Examples] = ({}, {"num_labels": 3, "ignore_index": -1})
    unchanged_by = frozenset({"increasing"})
    defined_for = "rows with a label that is not ignored"

    ignore_index: Annotated[
        int | None, "labels with this target leave their row; a row without any other is left out."
    ] = None

    @property
    def data(self) -> ScoreSpec:
        return score_spec(None, self.num_labels, self.ignore_index, logits=True)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if self.ignore_index is None or batch.needed_target.ndim != 2:
            return super().per_sample(batch)
        rows = self.row(batch)
        assert rows.counted is not None, "there is an ignore_index"
        values = rows.values[0].view(-1).masked_fill(~rows.counted, 0)
        name, ignored = self.row_name, self.ignore_index
        return SampleTerms.of(f"{name} without labels {ignored}", values, f"has labels but {ignored}", rows.counted)


@dataclass(frozen=True)
class MultilabelCoverageError(LabelOrderMetric):
    """Coverage error: how many labels have to be taken, by falling score, to have all that are right.

    The mean over rows of `max over right labels j of |{k: score_k >= score_j}|`, and of 0 for a row without a right
    label. It is at least the mean number of right labels.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.9, 0.5, 0.1], [0.2, 0.4, 0.8]]), torch.tensor([[1, 0, 1], [0, 0, 1]])
        >>> MultilabelCoverageError(num_labels=3)(preds, target)
        tensor(2., dtype=torch.float64)

    Source: Tsoumakas, Katakis, Vlahavas, Mining multi-label data (2010); scikit-learn, coverage_error.
    """

    value_range = NOT_NEGATIVE

    higher_is_better = False
    exact_terms = True
    row_name = "coverage"
    term = LabelCoverage


@dataclass(frozen=True)
class MultilabelRankingLoss(LabelOrderMetric):
    """Ranking loss: the share of pairs of a right and a wrong label in which the wrong one scores as high or higher.

        of a row: #{(j, k): j right, k wrong, s_k >= s_j} / (#{right} #{wrong})

    The mean over rows, where one without such pairs counts as 0.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.9, 0.5, 0.1], [0.2, 0.4, 0.8]]), torch.tensor([[1, 0, 1], [0, 0, 1]])
        >>> MultilabelRankingLoss(num_labels=3)(preds, target)
        tensor(0.2500, dtype=torch.float64)

    Source: Tsoumakas, Katakis, Vlahavas, Mining multi-label data (2010); scikit-learn, label_ranking_loss.
    """

    value_range = SHARE

    higher_is_better = False
    row_name = "ranking loss"
    term = LabelPairsWrong


@dataclass(frozen=True)
class MultilabelRankingAveragePrecision(LabelOrderMetric):
    """Label ranking average precision: of the labels that score as high as a right one, how many are right.

        of a row: mean over right labels j of #{right k: s_k >= s_j} / #{k: s_k >= s_j}

    The mean over rows of the mean over right labels; a row in which all or no labels are right counts as 1.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.9, 0.5, 0.1], [0.2, 0.4, 0.8]]), torch.tensor([[1, 0, 1], [0, 0, 1]])
        >>> MultilabelRankingAveragePrecision(num_labels=3)(preds, target)
        tensor(0.9167, dtype=torch.float64)

    Source: Tsoumakas, Katakis, Vlahavas, Mining multi-label data (2010); scikit-learn,
    label_ranking_average_precision_score.
    """

    value_range = SHARE

    higher_is_better = True
    row_name = "ranking average precision"
    term = LabelPrecision


OTHER_CRITERIA = ("exact_match", "overlap", "contain", "belong")


@dataclass(frozen=True)
class TopKMultilabelAccuracy(LabelRankingMetric):
    """Accuracy of the `k` labels with the highest scores of each row.

        #{rows: the criterion holds for the k highest labels and the right ones} / n

    Of equal scores, those of lower labels come first.

    Raises:
        ConfigError: `num_labels` is missing, `k` is below 1 or above it, or the criterion is unknown.
        InvalidValuesError: by `compute`, for NaN and for a target that is not 0 or 1.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([[0.9, 0.5, 0.1], [0.2, 0.4, 0.8]]), torch.tensor([[1, 0, 1], [0, 1, 1]])
        >>> TopKMultilabelAccuracy(num_labels=3, k=2)(preds, target)
        tensor(0.5000, dtype=torch.float64)

    Source: TorchEval, TopKMultilabelAccuracy.
    """

    value_range = SHARE

    criteria: Annotated[
        Criterion,
        'what counts as right: "exact_match": they are the right labels; "contain": all right labels are among them; '
        '"belong": all of them are right; "overlap": one of them is right; "hamming": the share of labels that are '
        "right where they are among them and wrong where not.",
    ] = "exact_match"
    k: Annotated[int, "how many labels are taken."] = 2

    higher_is_better = True
    exact_terms = True
    examples = ({"criteria": "hamming"}, *({"num_labels": 3, "criteria": each} for each in OTHER_CRITERIA))
    unchanged_by = frozenset({"increasing"})

    def __post_init__(self) -> None:
        super().__post_init__()
        assert self.num_labels is not None
        if not 1 <= self.k <= self.num_labels:
            raise ConfigError(describe("k", self.k, f"1 to num_labels={self.num_labels}", "Give a smaller k"))

    @property
    def row(self) -> LabelRows:
        return TopLabels(self.data, self.k, self.criteria)

    def per_sample(self, batch: Batch) -> SampleTerms | None:
        if batch.needed_target.ndim != 2:
            return None
        values = self.row(batch).values[0].view(-1) / self._labels
        return SampleTerms.of(f"top {self.k} labels right, by {self.criteria}", values)

    @property
    def _labels(self) -> int:
        """By what the number of a row is divided."""
        return self.num_labels if self.criteria == "hamming" and self.num_labels else 1

    def compute(self, counts: RowTotals) -> Tensor:
        (mean,) = means(counts)
        return result([mean / self._labels if isinstance(mean, Fraction) else mean])
