"""What the laws are tested on: a case for every public metric, and how the bits of a meter are compared.

A case is a metric, whether its samples are weighted, and a way to draw samples for it. Values are drawn so that every
dtype down to bfloat16 holds them exactly; ties, constants and absent classes are frequent. `tests/test_laws.py` holds
the laws themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from assay.errors import AssayWarning, InvalidValuesError
from assay.meter import Meter
from assay.metrics import (
    AUROC,
    ROC,
    Accuracy,
    AveragePrecision,
    BrierScore,
    CalibrationCurve,
    CalibrationError,
    ClassReport,
    Classwise,
    CohenKappa,
    ConcordanceCorrCoef,
    ConfusionMatrix,
    Entropy,
    ExactMatch,
    ExplainedVariance,
    F1Score,
    FBetaScore,
    HingeLoss,
    JaccardIndex,
    JensenShannonDivergence,
    KendallRankCorrCoef,
    KLDivergence,
    LogCoshError,
    LogLoss,
    MatthewsCorrCoef,
    Max,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    Min,
    MultilabelCoverageError,
    MultilabelRankingAveragePrecision,
    MultilabelRankingLoss,
    MutualInformation,
    PearsonCorrCoef,
    PerOutput,
    Perplexity,
    PerSample,
    Precision,
    PrecisionRecallCurve,
    R2Score,
    Recall,
    RecallAtFixedPrecision,
    RelativeSquaredError,
    SpearmanCorrCoef,
    StatScores,
    Sum,
    Variance,
)
from assay.metrics.classification.label_metrics import LabelMetric
from assay.metrics.classification.ranking_metric import RankingMetric
from assay.metrics.samples import (
    CLASSES,
    LABELS,
    OUTPUTS,
    binary,
    binary_logits,
    draw_columns,
    draw_for,
    examples,
    integers,
    multiclass,
    multiclass_logits,
    multilabel,
    output_pairs,
    probabilities,
    public_metrics,
    tokens,
)
from assay.tally.base import Tally
from assay.tally.labels.groups import GroupedLabels
from assay.tally.points.feature_moments import FeatureMoments
from assay.tally.queries.queries import QueryDocuments
from assay.tally.scores.scores import ScoreTally
from assay.tally.stores.row_store import RowStore
from assay.tally.stores.sample_store import SampleStore
from assay.tally.stores.samples import SampleTally

MANY = 300  # classes: more than a matrix is kept for, and few of them occur
IGNORED = -100


class Data(NamedTuple):
    """Samples: row k of each tensor, or entry k of each list, belongs to sample k."""

    preds: Any
    target: Any = None
    weights: Tensor | None = None
    columns: Mapping[str, Tensor] = MappingProxyType({})

    @property
    def count(self) -> int:
        return len(self.preds)

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor of the samples."""
        return [each for each in (*self[:3], *self.columns.values()) if isinstance(each, Tensor)]

    def map(self, change: Callable[[Tensor], Tensor]) -> Data:
        """The samples with every tensor changed; lists of raw samples stay as they are."""
        columns = {name: change(column) for name, column in self.columns.items()}
        return Data(*(change(each) if isinstance(each, Tensor) else each for each in self[:3]), columns)

    def rows(self, index: slice | Tensor | list[int]) -> Data:
        """Some of the samples."""
        some = self.map(lambda tensor: tensor[index])
        lists = [name for name in ("preds", "target") if isinstance(getattr(self, name), list)]
        return some._replace(**{name: _entries(getattr(self, name), index) for name in lists})


def _entries(raw: Sequence[Any], index: slice | Tensor | list[int]) -> list[Any]:
    return list(raw[index]) if isinstance(index, slice) else [raw[int(k)] for k in index]


Draw = Callable[[torch.Generator, int], tuple[Tensor, ...]]


@dataclass(frozen=True, eq=False)
class Case:
    """A metric with the samples it is tested on."""

    metric: Metric
    draw: Draw
    weighted: bool = False

    def __str__(self) -> str:
        return f"{self.metric!r}, {self.draw.__name__}{', weighted' if self.weighted else ''}"

    def data(self, seed: int, count: int) -> Data:
        """`count` samples, with weights where the case has them."""
        generator = torch.Generator().manual_seed(seed)
        data = Data(*self.draw(generator, count))
        data = data._replace(columns=draw_columns(self.metric, generator, count))
        if self.weighted:
            weights = torch.randint(0, 9, (count,), generator=generator) / (1 if self.whole_weights else 4)
            data = data._replace(weights=weights)
        return data

    @property
    def raw(self) -> bool:
        """Whether samples are strings or the like, which are encoded on the CPU before they are counted."""
        return bool(self.metric.encoders)

    @property
    def whole_weights(self) -> bool:
        """Whether a weight says how often its sample occurs."""
        return _counts_in(self.metric, SampleTally) or counts_pairs(self)

    @property
    def kind(self) -> tuple[object, ...]:
        """What the cases have in common of which `make test` runs one in each law."""
        return type(self.metric), type(self.metric.tally(self.weighted))

    def meter(self, stage_bytes: int = 1 << 21) -> Meter:
        return Meter(value=self.metric, weighted=self.weighted, stage_bytes=stage_bytes)

    def counted(self, *batches: Data, stage_bytes: int = 1 << 21) -> Meter:
        """A new meter that was fed these batches."""
        return feed(self.meter(stage_bytes), *batches)


def kind_of(tally: Tally) -> tuple[object, ...]:
    """What tallies have in common that count in one way: their class, and the module of their terms."""
    return type(tally), type(getattr(tally, "term", None)).__module__


def feed(meter: Meter, *batches: Data) -> Meter:
    for batch in batches:
        meter.update(batch.preds, batch.target, weights=batch.weights, **batch.columns)
    return meter


def value(meter: Meter) -> Any:
    """What the meter of a case reads. Random samples may well lack a class: what it warns of is not the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssayWarning)
        try:
            return meter.compute()
        except InvalidValuesError as error:
            return str(error)


def bits(tree: Any) -> Any:
    """A tree of tensors in a form that is equal to another exactly when all types, shapes and bits are."""
    if isinstance(tree, Meter):
        return bits(tree.states()), tree.rows, bits(value(tree))
    if isinstance(tree, Tensor):
        assert tree.device.type == "cpu"
        return tree.dtype, tuple(tree.shape), tree.numpy().tobytes()
    if isinstance(tree, dict):
        return {name: bits(branch) for name, branch in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree).__name__, [bits(branch) for branch in tree]
    if isinstance(tree, SampleStore):
        return tree.rows, {name: bits(tree.column(name)) for name in tree.columns}
    return tree


def leaves(tree: Any) -> Iterator[Tensor]:
    """Every tensor of a value."""
    if isinstance(tree, Tensor):
        yield tree
    elif isinstance(tree, dict):
        yield from leaves(list(tree.values()))
    elif isinstance(tree, list | tuple):
        for branch in tree:
            yield from leaves(branch)


# --- samples -------------------------------------------------------------------------------------------------------


def binary_labels(generator: torch.Generator, count: int) -> Data:
    return Data(integers(generator, 0, 2, count), integers(generator, 0, 2, count))


def multiclass_labels(generator: torch.Generator, count: int) -> Data:
    return Data(integers(generator, 0, CLASSES, count), integers(generator, 0, CLASSES, count))


def multiclass_images(generator: torch.Generator, count: int) -> Data:
    scores = probabilities(generator, count, 2, 3, CLASSES).movedim(-1, 1)
    return Data(scores, integers(generator, 0, CLASSES, count, 2, 3))


def many_classes(generator: torch.Generator, count: int) -> Data:
    return Data(integers(generator, 0, 99, count, MANY) / 64, integers(generator, 0, MANY, count))


def ignoring(draw: Draw) -> Draw:
    """Some targets are to be ignored."""

    def some_ignored(generator: torch.Generator, count: int) -> Data:
        data = Data(*draw(generator, count))
        assert data.target is not None
        ignored = integers(generator, 0, 4, *data.target.shape) == 0
        return data._replace(target=data.target.masked_fill(ignored, IGNORED))

    some_ignored.__name__ = f"{draw.__name__} with some ignored"
    return some_ignored


def log_distributions(generator: torch.Generator, count: int) -> Data:
    """Logarithms that no sum makes into those of probabilities; some are of 0."""
    preds, target = (integers(generator, -40, 1, count, CLASSES) / 8 for _ in range(2))
    return Data(preds.masked_fill(integers(generator, 0, 9, count, CLASSES) == 0, -torch.inf), target)


def probabilities_alone(generator: torch.Generator, count: int) -> Data:
    return Data(probabilities(generator, count, CLASSES))


def wide(generator: torch.Generator, count: int) -> Data:
    """Values over the whole range of float32, whose sums cancel."""
    preds = torch.randint(-(2**31), 2**31, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    target = preds.roll(1) ^ integers(generator, 0, 2, count).to(torch.int32)
    exponent = 0x7F800000
    finite = [torch.where(x & exponent == exponent, x & 0x7FFFFF, x) for x in (preds, target)]
    return Data(*(x.view(torch.float32) for x in finite))


def wide_values(generator: torch.Generator, count: int) -> Data:
    return wide(generator, count)._replace(target=None)


# --- cases ---------------------------------------------------------------------------------------------------------


def cases(metrics: Sequence[Metric], *draws: Draw) -> list[Case]:
    """Every metric on every kind of samples, and on the first of them with weights too where it takes some."""
    plain = [Case(metric, draw) for metric in metrics for draw in draws]
    return plain + [Case(metric, draws[0], weighted=True) for metric in metrics if _takes_weights(metric)]


TASKS: tuple[tuple[dict[str, int], tuple[Draw, ...]], ...] = (
    ({}, (binary, binary_labels)),
    ({"num_classes": CLASSES}, (multiclass, multiclass_labels, multiclass_images)),
    ({"num_labels": LABELS}, (multilabel,)),
)


def _takes_weights(metric: Metric) -> bool:
    return metric.inputs != "boxes" and getattr(metric, "aggregation", "mean") == "mean"


def _declared() -> list[Case]:
    """The examples of every metric."""
    metrics = [metric for kind in public_metrics().values() for metric in examples(kind)]
    return [case for metric in metrics for case in cases([metric], draw_for(metric))]


def _classification() -> list[Case]:
    of_classes = {"num_classes": CLASSES}
    found = []
    for task, draws in TASKS:
        found += cases([Accuracy(**task), ConfusionMatrix(**task)], *draws)
        kinds = (FBetaScore, ConfusionMatrix, ExactMatch)
        found += cases([kind(ignore_index=IGNORED, **task) for kind in kinds], ignoring(draws[0]))
    found += cases([CohenKappa(weights=weights, **of_classes) for weights in ("linear", "quadratic")], multiclass)
    for average in ("micro", "macro", "weighted", None):
        found += cases(
            [Precision(average=average, **of_classes), StatScores(average=average, **of_classes)], multiclass
        )
        found += cases([JaccardIndex(average=average, num_labels=LABELS)], multilabel)
    found += cases([ConfusionMatrix(normalize=over, **of_classes) for over in ("true", "pred", "all")], multiclass)
    found += cases(
        [kind(top_k=2, **of_classes) for kind in (Accuracy, F1Score, StatScores)], multiclass, multiclass_images
    )
    found += cases([kind(ignore_index=1, **of_classes) for kind in (Accuracy, ClassReport)], multiclass)
    found += cases([Accuracy(ignore_index=IGNORED, **of_classes)], ignoring(multiclass_images))
    found += cases([Accuracy(logits=True, threshold=0.75), ExactMatch(logits=True)], binary_logits)
    found += cases([F1Score(**of_classes)], multiclass_logits)
    found += cases([kind(num_classes=MANY) for kind in (Accuracy, Precision, MatthewsCorrCoef)], many_classes)
    found += cases([Recall(num_classes=MANY, top_k=3, ignore_index=IGNORED)], ignoring(many_classes))
    return found


def _ranking() -> list[Case]:
    found = []
    for task, (draw, *_) in TASKS:
        for limit in (1 << 20, 16, 0):
            found += cases([AUROC(exact_up_to=limit, bounds=True, **task)], draw)
            found += cases([AUROC(exact_up_to=limit, ignore_index=IGNORED, **task)], ignoring(draw))
        found += cases([AveragePrecision(**task), PrecisionRecallCurve(exact_up_to=0, **task)], draw)
        found += cases([AUROC(thresholds=9, **task), ROC(thresholds=9, ignore_index=IGNORED, **task)], draw)
    found += cases([AveragePrecision(exact=True), ROC(exact_up_to=0)], binary)
    for limit in (1 << 20, 0):
        found += cases([AUROC(logits=True, exact_up_to=limit)], binary_logits)
    found += cases([AUROC(num_labels=LABELS, average="micro"), AUROC(num_labels=LABELS, average=None)], multilabel)
    of_logits = {"num_classes": CLASSES, "logits": True}
    found += cases([AUROC(average="weighted", **of_logits), AUROC(exact_up_to=0, **of_logits)], multiclass_logits)
    found += cases([kind(**of_logits) for kind in (AveragePrecision, ROC, PrecisionRecallCurve)], multiclass_logits)
    found += cases([RecallAtFixedPrecision(min_precision=0.5, **of_logits)], multiclass_logits)
    found += cases([AveragePrecision(thresholds=5, **of_logits)], multiclass_logits)
    return found


def _of_scores() -> list[Case]:
    found = []
    for task, draw, logits in (({}, binary, binary_logits), ({"num_classes": CLASSES}, multiclass, multiclass_logits)):
        kinds = (CalibrationError, CalibrationCurve, BrierScore, LogLoss)
        found += cases([kind(logits=True, **task) for kind in kinds], logits)
        found += cases([kind(ignore_index=IGNORED, **task) for kind in kinds], ignoring(draw))
        found += cases([CalibrationError(norm=norm, n_bins=4, **task) for norm in ("l2", "max")], draw)
        found += cases([HingeLoss(squared=True, **task)], logits)
    found += cases([BrierScore(num_classes=CLASSES)], multiclass_images)
    found += cases([KLDivergence(log_prob=True), JensenShannonDivergence(log_prob=True)], log_distributions)
    found += cases([Entropy(), MutualInformation(num_classes=CLASSES)], probabilities_alone)
    kinds = (MultilabelCoverageError, MultilabelRankingLoss, MultilabelRankingAveragePrecision)
    found += cases([kind(num_labels=LABELS, ignore_index=IGNORED) for kind in kinds], ignoring(multilabel))
    return found + cases([Perplexity(ignore_index=IGNORED)], ignoring(tokens))


def _of_numbers() -> list[Case]:
    errors = [MeanSquaredError(), MeanSquaredError(squared=False), MeanAbsoluteError()]
    relative = [
        *(R2Score(), R2Score(adjusted=2), ExplainedVariance(), RelativeSquaredError()),
        *(RelativeSquaredError(squared=False), PearsonCorrCoef(), ConcordanceCorrCoef(), ConcordanceCorrCoef(ddof=1)),
    ]
    ranks = [SpearmanCorrCoef(), *(KendallRankCorrCoef(variant) for variant in ("a", "b", "c"))]
    return [
        *cases([*errors, *relative, *ranks], wide),
        *cases([MeanSquaredError(), MeanAbsoluteError(), LogCoshError()], output_pairs),
        *cases([Mean(), Variance(), Max(), Min()], wide_values),
        *cases([kind(nan_policy="raise") for kind in (Mean, Sum, Max, Min)], wide_values),
    ]


def _of_metrics() -> list[Case]:
    precision, recall, classes = Precision(), Recall(), tuple("abcd"[:CLASSES])
    arithmetic = [2 * precision * recall / (precision + recall), -(abs(AUROC() - BrierScore()) ** 2)]
    named = Classwise(AUROC(num_classes=CLASSES, average=None), classes)
    found = [*cases(arithmetic, binary), *cases([named], multiclass)]
    found += cases([PerOutput(AUROC(exact_up_to=0), LABELS)], multilabel)
    return found + cases([PerOutput((MeanSquaredError() + SpearmanCorrCoef()) / 2, OUTPUTS)], output_pairs)


_ALL = [*_declared(), *_classification(), *_ranking(), *_of_scores(), *_of_numbers(), *_of_metrics()]
CASES = list({(case.metric, case.draw.__name__, case.weighted): case for case in _ALL}.values())


def shows_counts(metric: Metric) -> bool:
    """Whether the value has counts, which are 0 without data, edges, or curves, which have ends without it."""
    return metric.inputs == "labels" and metric.higher_is_better is None and metric.family != "fairness"


def names_a_dtype(metric: Metric) -> bool:
    """Whether states keep float64 apart from narrower dtypes; the values have the same bits."""
    largest = any("max" in each.tally(False).fields.values() for each in within(metric))
    return largest or _counts_in(metric, GroupedLabels, RowStore, SampleTally, ScoreTally, QueryDocuments)


def counts_pairs(case: Case) -> bool:
    """Whether the value depends on how many pairs of samples there are, and so on how many samples."""
    return bool(getattr(case.metric, "counts_pairs", False) or getattr(case.metric, "bias_correction", False))


def _counts_in(metric: Metric, *kinds: type) -> bool:
    """Whether a metric, or one that it is made of, is computed from such a tally."""
    return any(isinstance(each.tally(False), kinds) for each in within(metric))


def within(metric: Metric) -> Iterator[Metric]:
    """A metric and those that it is made of."""
    yield metric
    for part in (*getattr(metric, "operands", ()), getattr(metric, "metric", None)):
        if isinstance(part, Metric):
            yield from within(part)


def keeps_samples(metric: Metric) -> bool:
    """Whether what an update does depends on how many there were: it then cannot be compiled or captured."""
    return any(
        isinstance(tally, FeatureMoments | GroupedLabels | RowStore | SampleTally | QueryDocuments)
        or (isinstance(tally, ScoreTally) and tally.keep != 0)
        for tally in (each.tally(False) for each in within(metric))
    )


def rounds(metric: Metric) -> bool:
    """Whether terms are rounded before they are summed, in the dtype they come in."""
    if (metric.encoders and not isinstance(metric, PerSample)) or metric.inputs in ("masks", "segments"):
        return False  # raw samples have no dtype, and indices of classes are no floats
    scaled = metric.inputs == "labels" and getattr(metric, "logits", False) and not isinstance(metric, LabelMetric)
    of_classes = getattr(metric, "num_classes", None) is not None  # whose log-odds are ranked
    in_float64 = metric.terms_in_float64 or not getattr(metric, "by_row", True)
    halves = isinstance(metric, MultilabelRankingLoss)  # of the two pairs that three labels have
    ranked = isinstance(metric, RankingMetric) and metric.thresholds is None
    by_softmax = scaled and (of_classes or not ranked)
    return (not metric.exact_terms and not in_float64 and not halves) or by_softmax
