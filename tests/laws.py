"""What the laws are tested on: a case for every public metric, and how the bits of a meter are compared.

A case is a metric, whether its samples are weighted, and a way to draw samples for it. Values are drawn so that every
dtype down to bfloat16 holds them exactly; ties, constants and absent classes are frequent. `tests/test_laws.py` holds
the laws themselves.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch import Tensor

import assay.metrics
from assay.errors import AssayWarning, InvalidValuesError
from assay.meter import Meter
from assay.metrics.aggregation import Max, Mean, Min, Sum, Variance
from assay.metrics.agreement import CohenKappa, MatthewsCorrCoef
from assay.metrics.base import Metric
from assay.metrics.calibration import (
    BrierScore,
    CalibrationCurve,
    CalibrationError,
    HingeLoss,
    KLDivergence,
    LogLoss,
)
from assay.metrics.classification import (
    Accuracy,
    BalancedAccuracy,
    DiceScore,
    F1Score,
    FBetaScore,
    HammingDistance,
    JaccardIndex,
    NegativePredictiveValue,
    Precision,
    Recall,
    Specificity,
)
from assay.metrics.classwise import Classwise
from assay.metrics.confusion import ClassReport, ConfusionMatrix, ExactMatch, StatScores
from assay.metrics.correlation import ConcordanceCorrCoef, CosineSimilarity, PearsonCorrCoef
from assay.metrics.explained import ExplainedVariance, R2Score, RelativeSquaredError
from assay.metrics.per_output import PerOutput
from assay.metrics.quantile import Quantile
from assay.metrics.rank_correlation import KendallRankCorrCoef, SpearmanCorrCoef
from assay.metrics.ranking import (
    AUROC,
    ROC,
    AveragePrecision,
    PrecisionAtFixedRecall,
    PrecisionRecallCurve,
    RecallAtFixedPrecision,
    SensitivityAtSpecificity,
    SpecificityAtSensitivity,
)
from assay.metrics.regression import (
    CriticalSuccessIndex,
    LogCoshError,
    MeanAbsoluteError,
    MeanAbsolutePercentageError,
    MeanSquaredError,
    MeanSquaredLogError,
    MinkowskiDistance,
    SymmetricMeanAbsolutePercentageError,
    TweedieDevianceScore,
    WeightedMeanAbsolutePercentageError,
)
from assay.metrics.stat_scores import LabelMetric
from assay.metrics.text import Perplexity
from assay.tally.samples import SampleStore

CLASSES, LABELS, OUTPUTS = 4, 3, 2
MANY = 300  # classes: more than a matrix is kept for, and few of them occur
IGNORED = -100


class Data(NamedTuple):
    """Samples: row k of each tensor belongs to sample k."""

    preds: Tensor
    target: Tensor | None = None
    weights: Tensor | None = None

    @property
    def count(self) -> int:
        return len(self.preds)

    def map(self, change: Callable[[Tensor], Tensor]) -> Data:
        """The samples with every tensor changed."""
        return Data(*(None if tensor is None else change(tensor) for tensor in self))

    def rows(self, index: slice | Tensor | list[int]) -> Data:
        """Some of the samples."""
        return self.map(lambda tensor: tensor[index])


Draw = Callable[[torch.Generator, int], Data]


@dataclass(frozen=True, eq=False)
class Case:
    """A metric with the samples it is tested on."""

    metric: Metric
    draw: Draw
    weighted: bool = False
    whole_weights: bool = False

    def __str__(self) -> str:
        return f"{self.metric!r}, {self.draw.__name__}{', weighted' if self.weighted else ''}"

    def data(self, seed: int, count: int) -> Data:
        """`count` samples, with weights where the case has them."""
        generator = torch.Generator().manual_seed(seed)
        data = self.draw(generator, count)
        if self.weighted:
            weights = torch.randint(0, 9, (count,), generator=generator) / (1 if self.whole_weights else 4)
            data = data._replace(weights=weights)
        return data

    def meter(self, stage_bytes: int = 1 << 21) -> Meter:
        return Meter(value=self.metric, weighted=self.weighted, stage_bytes=stage_bytes)

    def counted(self, *batches: Data, stage_bytes: int = 1 << 21) -> Meter:
        """A new meter that was fed these batches."""
        return feed(self.meter(stage_bytes), *batches)


def feed(meter: Meter, *batches: Data) -> Meter:
    for batch in batches:
        meter.update(batch.preds, batch.target, weights=batch.weights)
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


def public_metrics() -> dict[str, type[Metric]]:
    """Every metric that assay.metrics defines, by name."""
    found = {}
    for module in pkgutil.iter_modules(assay.metrics.__path__, "assay.metrics."):
        for name, thing in vars(importlib.import_module(module.name)).items():
            if inspect.isclass(thing) and issubclass(thing, Metric) and not inspect.isabstract(thing):
                found[name] = thing
    return found


# --- samples -------------------------------------------------------------------------------------------------------


def _integers(generator: torch.Generator, low: int, high: int, *shape: int) -> Tensor:
    return torch.randint(low, high, shape, generator=generator)


def _probabilities(generator: torch.Generator, *shape: int) -> Tensor:
    """Rows that sum to 1, in steps of 1/64."""
    cuts = _integers(generator, 0, 65, *shape[:-1], shape[-1] - 1).sort(-1).values
    ends = torch.zeros(*shape[:-1], 1, dtype=torch.int64)
    return torch.cat([ends, cuts, ends + 64], -1).diff(dim=-1) / 64


def binary(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 0, 65, count) / 64, _integers(generator, 0, 2, count))


def binary_logits(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, -128, 129, count) / 4, _integers(generator, 0, 2, count))


def binary_labels(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 0, 2, count), _integers(generator, 0, 2, count))


def multiclass(generator: torch.Generator, count: int) -> Data:
    return Data(_probabilities(generator, count, CLASSES), _integers(generator, 0, CLASSES, count))


def multiclass_logits(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, -128, 129, count, CLASSES) / 4, _integers(generator, 0, CLASSES, count))


def multiclass_labels(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 0, CLASSES, count), _integers(generator, 0, CLASSES, count))


def multiclass_images(generator: torch.Generator, count: int) -> Data:
    scores = _probabilities(generator, count, 2, 3, CLASSES).movedim(-1, 1)
    return Data(scores, _integers(generator, 0, CLASSES, count, 2, 3))


def many_classes(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 0, 99, count, MANY) / 64, _integers(generator, 0, MANY, count))


def multilabel(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 0, 65, count, LABELS) / 64, _integers(generator, 0, 2, count, LABELS))


def ignoring(draw: Draw) -> Draw:
    """Some targets are to be ignored."""

    def some_ignored(generator: torch.Generator, count: int) -> Data:
        data = draw(generator, count)
        assert data.target is not None
        ignored = _integers(generator, 0, 4, *data.target.shape) == 0
        return data._replace(target=data.target.masked_fill(ignored, IGNORED))

    some_ignored.__name__ = f"{draw.__name__} with some ignored"
    return some_ignored


def regression(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, -128, 129, count) / 8, _integers(generator, -128, 129, count) / 8)


def regression_outputs(generator: torch.Generator, count: int) -> Data:
    shape = (count, OUTPUTS)
    return Data(_integers(generator, -128, 129, *shape) / 8, _integers(generator, -128, 129, *shape) / 8)


def positive(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, 1, 129, count) / 8, _integers(generator, 1, 129, count) / 8)


def wide(generator: torch.Generator, count: int) -> Data:
    """Values over the whole range of float32, whose sums cancel."""
    preds = torch.randint(-(2**31), 2**31, (count,), generator=generator, dtype=torch.int64).to(torch.int32)
    target = preds.roll(1) ^ _integers(generator, 0, 2, count).to(torch.int32)
    exponent = 0x7F800000
    finite = [torch.where(x & exponent == exponent, x & 0x7FFFFF, x) for x in (preds, target)]
    return Data(*(x.view(torch.float32) for x in finite))


def vectors(generator: torch.Generator, count: int) -> Data:
    return Data(*(_integers(generator, -128, 129, count, 5) / 8 for _ in range(2)))


def tokens(generator: torch.Generator, count: int) -> Data:
    logits = _integers(generator, -128, 129, count, 3, 2 * CLASSES) / 4
    return Data(logits, _integers(generator, 0, 2 * CLASSES, count, 3))


def distributions(generator: torch.Generator, count: int) -> Data:
    return Data(*((_probabilities(generator, count, CLASSES) * 64 + 1) / 128 for _ in range(2)))


def wide_values(generator: torch.Generator, count: int) -> Data:
    return wide(generator, count)._replace(target=None)


def values(generator: torch.Generator, count: int) -> Data:
    return Data(_integers(generator, -128, 129, count) / 8)


# --- cases ---------------------------------------------------------------------------------------------------------


def cases(metrics: Sequence[Metric], *draws: Draw) -> list[Case]:
    """Every metric on every kind of samples, and on the first of them with weights too."""
    plain = [Case(metric, draw) for metric in metrics for draw in draws]
    return plain + [Case(metric, draws[0], weighted=True) for metric in metrics]


TASKS: tuple[tuple[dict[str, int], tuple[Draw, ...]], ...] = (
    ({}, (binary, binary_labels)),
    ({"num_classes": CLASSES}, (multiclass, multiclass_labels, multiclass_images)),
    ({"num_labels": LABELS}, (multilabel,)),
)


def _classification() -> list[Case]:
    of_classes = {"num_classes": CLASSES}
    kinds = [
        BalancedAccuracy,
        Precision,
        Recall,
        Specificity,
        NegativePredictiveValue,
        F1Score,
        DiceScore,
        JaccardIndex,
    ]
    kinds += [HammingDistance, MatthewsCorrCoef, StatScores, ExactMatch, ClassReport]
    found = []
    for task, draws in TASKS:
        found += cases([Accuracy(**task), ConfusionMatrix(**task)], *draws)
        found += cases([kind(**task) for kind in kinds], draws[0])
        found += cases([FBetaScore(beta=2.0, ignore_index=IGNORED, **task)], ignoring(draws[0]))
        found += cases(
            [kind(ignore_index=IGNORED, **task) for kind in (ConfusionMatrix, ExactMatch)], ignoring(draws[0])
        )
    for task, draws in TASKS[:2]:
        found += cases([CohenKappa(weights=weights, **task) for weights in (None, "linear", "quadratic")], draws[0])
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
        found += cases([AveragePrecision(**task), ROC(**task), PrecisionRecallCurve(exact_up_to=0, **task)], draw)
    found += cases([AveragePrecision(exact_up_to=limit, bounds=True) for limit in (16, 0)], binary)
    found += cases([AveragePrecision(exact=True), PrecisionRecallCurve(), ROC(exact_up_to=0)], binary)
    for limit in (1 << 20, 0):
        found += cases([RecallAtFixedPrecision(min_precision=0.5, exact_up_to=limit)], binary)
        found += cases([PrecisionAtFixedRecall(min_recall=0.5, exact_up_to=limit)], binary)
        found += cases([SensitivityAtSpecificity(min_specificity=0.5, exact_up_to=limit)], binary)
        found += cases([SpecificityAtSensitivity(min_sensitivity=0.5, exact_up_to=limit)], binary)
        found += cases([AUROC(logits=True, exact_up_to=limit)], binary_logits)
    found += cases([RecallAtFixedPrecision(min_precision=0.5, num_classes=CLASSES)], multiclass)
    found += cases([AUROC(num_labels=LABELS, average="micro"), AUROC(num_labels=LABELS, average=None)], multilabel)
    of_logits = {"num_classes": CLASSES, "logits": True}
    found += cases([AUROC(average="weighted", **of_logits), AUROC(exact_up_to=0, **of_logits)], multiclass_logits)
    found += cases([kind(**of_logits) for kind in (AveragePrecision, ROC, PrecisionRecallCurve)], multiclass_logits)
    found += cases([RecallAtFixedPrecision(min_precision=0.5, **of_logits)], multiclass_logits)
    return found


def _calibration() -> list[Case]:
    found = []
    for task, draw, logits in (({}, binary, binary_logits), ({"num_classes": CLASSES}, multiclass, multiclass_logits)):
        kinds = (CalibrationError, CalibrationCurve, BrierScore, LogLoss)
        found += cases([kind(**task) for kind in kinds], draw)
        found += cases([kind(logits=True, **task) for kind in kinds], logits)
        found += cases([kind(ignore_index=IGNORED, **task) for kind in kinds], ignoring(draw))
        found += cases([CalibrationError(norm=norm, n_bins=4, **task) for norm in ("l2", "max")], draw)
        found += cases([HingeLoss(squared=squared, **task) for squared in (False, True)], logits)
    found += cases([BrierScore(num_classes=CLASSES)], multiclass_images)
    found += cases([HingeLoss(num_classes=CLASSES, multiclass_mode="one-vs-all")], multiclass_logits)
    return [*found, *cases([KLDivergence(), KLDivergence(reduction="sum")], distributions)]


def _regression() -> list[Case]:
    plain = [
        MeanSquaredError(),
        MeanSquaredError(squared=False),
        MeanAbsoluteError(),
        WeightedMeanAbsolutePercentageError(),
        MinkowskiDistance(1),
        MinkowskiDistance(2),
        MinkowskiDistance(3),
        CriticalSuccessIndex(0.5),
    ]
    relative = [
        R2Score(),
        R2Score(adjusted=2),
        ExplainedVariance(),
        RelativeSquaredError(),
        RelativeSquaredError(squared=False),
        PearsonCorrCoef(),
        ConcordanceCorrCoef(),
        ConcordanceCorrCoef(ddof=1),
    ]
    rounded = [MeanAbsolutePercentageError(), SymmetricMeanAbsolutePercentageError(), LogCoshError()]
    of_positive = [MeanSquaredLogError(), *(TweedieDevianceScore(power) for power in (0, 1, 1.5, 2, 3))]
    outputs = [
        MeanSquaredError(num_outputs=OUTPUTS),
        MeanAbsoluteError(num_outputs=OUTPUTS),
        LogCoshError(num_outputs=OUTPUTS),
        R2Score(num_outputs=OUTPUTS, multioutput="raw_values"),
        R2Score(num_outputs=OUTPUTS, multioutput="variance_weighted"),
        ExplainedVariance(num_outputs=OUTPUTS),
        PearsonCorrCoef(num_outputs=OUTPUTS),
        ConcordanceCorrCoef(num_outputs=OUTPUTS),
    ]
    return [
        *cases([*plain, *relative, *rounded], regression),
        *cases([*plain[:3], *relative], wide),
        *cases([MeanSquaredError(), MeanAbsoluteError(), LogCoshError()], regression_outputs),
        *cases(of_positive, positive),
        *cases(outputs, regression_outputs),
    ]


def _of_samples() -> list[Case]:
    ranks = [SpearmanCorrCoef(), *(KendallRankCorrCoef(variant) for variant in ("a", "b", "c"))]
    quantiles = [Quantile(0.5), Quantile((0.1, 0.9), "nearest")]
    outputs = [SpearmanCorrCoef(num_outputs=OUTPUTS), KendallRankCorrCoef(num_outputs=OUTPUTS)]
    found = [*cases(ranks, regression, wide), *cases(quantiles, values), *cases(outputs, regression_outputs)]
    return [replace(case, whole_weights=True) for case in found]


def _aggregation() -> list[Case]:
    metrics = [Mean(), Mean(nan_policy="ignore"), Sum(), Variance(), Variance(ddof=1), Max(), Min()]
    return [*cases(metrics, values), *cases([Mean(), Variance(), Max(), Min()], wide_values)]


def _others() -> list[Case]:
    cosines = cases([CosineSimilarity(), CosineSimilarity("mean")], vectors)
    return [*cosines, *cases([Perplexity()], tokens), *cases([Perplexity(ignore_index=IGNORED)], ignoring(tokens))]


def _of_metrics() -> list[Case]:
    precision, recall, classes = Precision(), Recall(), tuple("abcd"[:CLASSES])
    arithmetic = [2 * precision * recall / (precision + recall), -(abs(AUROC() - BrierScore()) ** 2)]
    named = Classwise(AUROC(num_classes=CLASSES, average=None), classes)
    found = [*cases(arithmetic, binary), *cases([named], multiclass)]
    found += cases([PerOutput(AUROC(exact_up_to=0), LABELS)], multilabel)
    several = cases([PerOutput((MeanSquaredError() + SpearmanCorrCoef()) / 2, OUTPUTS)], regression_outputs)
    return found + [replace(case, whole_weights=True) for case in several]


CASES = [
    *(*_classification(), *_ranking(), *_calibration(), *_regression(), *_of_samples(), *_aggregation()),
    *(*_others(), *_of_metrics()),
]

# Metrics that read counts, which are 0 without data, edges, or curves, which have ends without it.
COUNTS_WITHOUT_DATA = frozenset(
    {"CalibrationCurve", "ClassReport", "ConfusionMatrix", "PrecisionRecallCurve", "ROC", "StatScores"}
)
# Metrics with terms that are computed in floating point: in float64 where an input is float64, else in float32.
OF_ROUNDED_TERMS = frozenset(
    {
        "CosineSimilarity",
        "HingeLoss",
        "KLDivergence",
        "LogCoshError",
        "LogLoss",
        "MeanAbsolutePercentageError",
        "MeanSquaredLogError",
        "MinkowskiDistance",
        "Perplexity",
        "SymmetricMeanAbsolutePercentageError",
        "TweedieDevianceScore",
    }
)
# Metrics that keep samples.
OF_SAMPLES = frozenset({"KendallRankCorrCoef", "Quantile", "SpearmanCorrCoef"})
# Metrics that keep a number of samples, as long as there are no more.
OF_FEW_SAMPLES = frozenset(
    {
        "AUROC",
        "AveragePrecision",
        "PrecisionAtFixedRecall",
        "PrecisionRecallCurve",
        "ROC",
        "RecallAtFixedPrecision",
        "SensitivityAtSpecificity",
        "SpecificityAtSensitivity",
    }
)
# Metrics whose states keep float64 apart from narrower dtypes; what is read from them has the same bits.
STATES_NAME_A_DTYPE = OF_SAMPLES | OF_FEW_SAMPLES | {"Max", "Min"} | {"Arithmetic", "Classwise", "PerOutput"}


def within(metric: Metric) -> Iterator[Metric]:
    """A metric and those that it is made of."""
    yield metric
    for part in (*getattr(metric, "operands", ()), getattr(metric, "metric", None)):
        if isinstance(part, Metric):
            yield from within(part)


def keeps_samples(metric: Metric) -> bool:
    """Whether what an update does depends on how many there were: it then cannot be compiled or captured."""
    return any(
        (name := type(each).__name__) in OF_SAMPLES or (name in OF_FEW_SAMPLES and getattr(each, "exact_up_to", 0) > 0)
        for each in within(metric)
    )


def rounds(metric: Metric) -> bool:
    """Whether terms are rounded before they are summed, in the dtype they come in."""
    scales = ("BrierScore", "CalibrationCurve", "CalibrationError")
    name = type(metric).__name__
    if name in OF_FEW_SAMPLES:  # log-odds of multiclass logits
        return getattr(metric, "logits", False) and getattr(metric, "num_classes", None) is not None
    return name in OF_ROUNDED_TERMS or (name in scales and getattr(metric, "logits", False))


# --- invariances ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Invariance:
    """A change of the samples that the definition of some metrics does not see.

    Attributes:
        change: gives the samples before and after; None for cases that this says nothing about.
        exactly: for which of the other cases no bit of the value changes.
        nearly: for which cases only the rounding of terms changes.
    """

    change: Callable[[Case, Data], tuple[Data, Data] | None]
    exactly: Callable[[Case], bool]
    nearly: Callable[[Case], bool] = lambda case: False


def _named(case: Case, *names: str) -> bool:
    return type(case.metric).__name__ in names


def _option(case: Case, name: str) -> Any:
    return getattr(case.metric, name, None)


def _add_a_constant_to_each_row(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Of all scores of a row; no sum is rounded."""
    if case.draw not in (multiclass_logits, tokens, many_classes):
        return None
    constant = torch.arange(data.count).remainder(7) * 8 - 20.0
    return data, data._replace(preds=data.preds + constant.view(-1, *(1,) * (data.preds.ndim - 1)))


def _map_scores(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Through a strictly increasing function that rounds none of them."""
    decides = isinstance(case.metric, LabelMetric) and _option(case, "num_classes") is None
    if (
        decides
        or _named(case, "CriticalSuccessIndex", "PerOutput")
        or getattr(case.metric, "exact_up_to", EXACT) < EXACT
    ):
        return None
    if case.draw in (binary_logits, regression, regression_outputs):
        return data, data._replace(preds=data.preds**3)
    return (data, data._replace(preds=data.preds**2)) if case.draw in (binary, multiclass, multilabel) else None


def _of_pairs(case: Case) -> bool:
    """Whether a prediction is compared with a target in the same unit."""
    return case.draw in (regression, regression_outputs, positive, vectors)


def _map_each_affinely(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (data, data._replace(preds=2 * data.preds + 3, target=4 * data.target + 1)) if _of_pairs(case) else None


def _map_both_affinely(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (data, data._replace(preds=2 * data.preds + 3, target=2 * data.target + 3)) if _of_pairs(case) else None


def _shift_predictions(case: Case, data: Data) -> tuple[Data, Data] | None:
    return (data, data._replace(preds=data.preds + 3)) if _of_pairs(case) else None


def _scale_predictions(case: Case, data: Data) -> tuple[Data, Data] | None:
    unclear = _named(case, "CriticalSuccessIndex")  # depends on where the threshold is
    some = (_of_pairs(case) or case.draw is distributions) and not unclear
    return (data, data._replace(preds=4 * data.preds)) if some else None


def _swap(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Predictions and targets."""
    if case.draw in (wide, many_classes) or _option(case, "top_k") not in (None, 1) or data.target is None:
        return None
    if isinstance(case.metric, LabelMetric) and data.preds.dtype.is_floating_point:
        preds = data.preds.argmax(1) if _option(case, "num_classes") else (data.preds > 0.5).long()
        data = data._replace(preds=preds)
    alike = data.preds.shape == data.target.shape and data.preds.dtype == data.target.dtype
    if not alike or _option(case, "ignore_index") is not None:
        return None
    return data, data._replace(preds=data.target, target=data.preds)


def _repeat(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Every sample twice."""
    unclear = _named(case, "Quantile") or case.draw in (wide, wide_values)
    return None if unclear else (data, data.map(lambda x: torch.cat([x, x])))


def _double_weights(case: Case, data: Data) -> tuple[Data, Data] | None:
    unclear = _named(case, "Quantile") or case.draw in (wide, wide_values)
    return None if data.weights is None or unclear else (data, data._replace(weights=2 * data.weights))


def _renumber(case: Case, data: Data) -> tuple[Data, Data] | None:
    """Classes or labels. Rows with equal scores are left out: of these, the lowest class is decided for."""
    classes, ignored = _option(case, "num_classes"), _option(case, "ignore_index")
    if _option(case, "num_labels"):
        return data, data.map(lambda x: x.roll(1, 1) if x.ndim > 1 else x)
    if classes is None or case.draw is many_classes or ignored not in (None, IGNORED) or data.target is None:
        return None
    if data.preds.dtype.is_floating_point:
        data = data.rows(data.preds.sort(1).values.diff(dim=1).flatten(1).gt(0).all(1))
    assert data.target is not None
    target = torch.where(data.target == IGNORED, IGNORED, (data.target + 1) % classes)
    preds = data.preds.roll(1, 1) if data.preds.dtype.is_floating_point else (data.preds + 1) % classes
    return data, data._replace(preds=preds, target=target)


EXACT = 1 << 20
_RANKS = ("KendallRankCorrCoef", "SpearmanCorrCoef")
_CORRELATIONS = (*_RANKS, "PearsonCorrCoef")
_SHARES_OF_SPREAD = ("ExplainedVariance", "R2Score", "RelativeSquaredError")
_SYMMETRIC = (
    *("Accuracy", "CohenKappa", "DiceScore", "ExactMatch", "F1Score", "JaccardIndex", "MatthewsCorrCoef"),
    *("ConcordanceCorrCoef", "CosineSimilarity", "CriticalSuccessIndex", "LogCoshError", "MeanAbsoluteError"),
    *("MeanSquaredError", "MeanSquaredLogError", "MinkowskiDistance", "SymmetricMeanAbsolutePercentageError"),
    *("PerOutput", *_CORRELATIONS),
)
_COUNTS = ("ClassReport", "StatScores", "Sum", "MinkowskiDistance")


def _is_symmetric(case: Case) -> bool:
    average = _option(case, "average")
    if _named(case, "Precision", "StatScores"):  # pooled over classes, each wrong answer is of two of them
        return bool(_option(case, "num_classes")) and average in ("micro", *["macro"] * _named(case, "StatScores"))
    if _named(case, "HammingDistance"):  # of classes: one less the mean recall
        return _option(case, "num_classes") is None
    return (_named(case, *_SYMMETRIC) and average != "weighted") or _option(case, "power") == 0


def _is_a_total(case: Case) -> bool:
    table = _named(case, "ConfusionMatrix") and _option(case, "normalize") is None
    return table or _named(case, *_COUNTS) or _option(case, "reduction") == "sum" or bool(_option(case, "ddof"))


def _counts_samples(case: Case) -> bool:
    others = _option(case, "adjusted") or _option(case, "variant") == "a" or _named(case, "CalibrationCurve")
    return _is_a_total(case) or bool(others)


def _numbers_classes(case: Case) -> bool:
    """Whether the value has a place for each class, or depends on how far apart they are."""
    apart = _named(case, "CohenKappa") and _option(case, "weights") is not None
    several = _named(case, "ClassReport", "ConfusionMatrix", "PrecisionRecallCurve", "RecallAtFixedPrecision", "ROC")
    each = hasattr(case.metric, "average") and _option(case, "average") is None
    return apart or several or each or _option(case, "multiclass_mode") == "one-vs-all"


INVARIANCES = {
    "a constant per row of scores": Invariance(
        _add_a_constant_to_each_row, lambda case: _option(case, "multiclass_mode") != "one-vs-all"
    ),
    "an increasing function of the scores": Invariance(
        _map_scores,
        lambda case: _named(case, *OF_FEW_SAMPLES, *_RANKS, "Classwise") or isinstance(case.metric, LabelMetric),
    ),
    "scale and shift of each": Invariance(_map_each_affinely, lambda case: _named(case, *_CORRELATIONS)),
    "scale and shift of both": Invariance(
        _map_both_affinely, lambda case: _named(case, *_CORRELATIONS, *_SHARES_OF_SPREAD, "ConcordanceCorrCoef")
    ),
    "shift of the predictions": Invariance(
        _shift_predictions, lambda case: _named(case, *_CORRELATIONS, "ExplainedVariance")
    ),
    "scale of the predictions": Invariance(
        _scale_predictions, lambda case: _named(case, *_CORRELATIONS, "CosineSimilarity", "KLDivergence")
    ),
    "predictions and targets swapped": Invariance(_swap, _is_symmetric),
    "every sample twice": Invariance(_repeat, lambda case: not _counts_samples(case)),
    "weights times 2": Invariance(_double_weights, lambda case: not _is_a_total(case)),
    "other numbers of classes": Invariance(
        _renumber,
        lambda case: not _numbers_classes(case),
        lambda case: bool(_option(case, "logits")) and not _numbers_classes(case),
    ),
}


def comparable(tree: Any) -> list[Tensor]:
    """The tensors of a value without thresholds, which are scores."""
    if isinstance(tree, dict):
        return [leaf for branch in tree.values() for leaf in comparable(branch)]
    if hasattr(tree, "_fields"):
        tree = [getattr(tree, name) for name in tree._fields if not name.startswith("threshold")]
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for branch in tree for leaf in comparable(branch)]
