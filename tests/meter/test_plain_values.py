"""Values that are read from states as they were counted, in one step, against those of canonical states."""

from __future__ import annotations

import gc
import math
import weakref
from dataclasses import dataclass
from fractions import Fraction

import pytest
import torch

from assay import KLDivergence, LogLoss, Mean, MeanSquaredError, Meter, Precision, R2Score, Sum, WordErrorRate
from assay.errors import InvalidValuesError, InvalidValuesWarning, NoDataWarning
from assay.meter.values import plain_value
from assay.metrics import (
    AUROC,
    ConcordanceCorrCoef,
    ConfusionMatrix,
    CosineSimilarity,
    CramersV,
    EditDistance,
    ErrorRelativeGlobalDimensionlessSynthesis,
    HingeLoss,
    JaccardIndex,
    LogAUC,
    Max,
    MeanAbsoluteError,
    Min,
    MinkowskiDistance,
    MutualInfoScore,
    NormalizedRootMeanSquaredError,
    PeakSignalNoiseRatio,
    Perplexity,
    SignalNoiseRatio,
    SpearmanCorrCoef,
    SpectralAngleMapper,
    StatScores,
    TotalVariation,
    Variance,
    WordInfoLost,
    WordInfoPreserved,
)
from assay.metrics.regression.row_errors import RowMeanMetric
from assay.native.library import MISSING, in_torch, library
from assay.tally.rows.row_terms import RowNumbers
from laws import CASES, bits
from thinning import every

needs_compiled_code = pytest.mark.skipif(library() is None, reason=MISSING)


def long_way(meter):
    """The value from the canonical state, by `compute` of the metric."""
    return meter.metrics["value"].compute(meter.counts_of("value"))


@every(CASES)
def test_a_plain_value_has_the_bits_of_the_canonical_state(case):
    first, second = case.counted(case.data(1, 23), case.data(2, 40)), case.counted(case.data(3, 5))
    for meter in (first, first + second):
        plain = plain_value(meter, "value")
        assert plain is None or bits(plain) == bits(long_way(meter))


NUMBERS = torch.tensor([0.1, 2.0, -3.5]), torch.tensor([0.3, 1.0, -3.0])
SCORES = torch.tensor([[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]]), torch.tensor([1, 0, 0])
TEXTS = ["a b", "c d e"], ["a c", "c d e"]
PICTURES = tuple(torch.rand(2, 3, 2, 6, 6, generator=torch.Generator().manual_seed(5)))
PLAIN = [
    (MeanSquaredError(), NUMBERS),
    (MeanSquaredError(squared=False), NUMBERS),
    (MeanAbsoluteError(), NUMBERS),
    (MinkowskiDistance(p=3), NUMBERS),
    (Perplexity(), SCORES),
    (R2Score(), NUMBERS),
    (Mean(), NUMBERS[:1]),
    (Sum(), NUMBERS[:1]),
    (LogLoss(num_classes=2), SCORES),
    (HingeLoss(num_classes=2), SCORES),
    (KLDivergence(), (SCORES[0], SCORES[0].flip(1))),
    (KLDivergence(reduction="sum"), (SCORES[0], SCORES[0].flip(1))),
    (CosineSimilarity(), (SCORES[0], SCORES[0].flip(1))),
    (WordErrorRate(), TEXTS),
    (EditDistance(), TEXTS),
    (EditDistance(reduction="sum"), TEXTS),
    (ConcordanceCorrCoef(ddof=1), NUMBERS),
    *((NormalizedRootMeanSquaredError(normalization=each), NUMBERS) for each in ("mean", "std", "l2")),
    *((MinkowskiDistance(p=each), NUMBERS) for each in (1, 2, 3)),
    (ConfusionMatrix(num_classes=2), SCORES),
    (ConfusionMatrix(num_labels=2), (SCORES[0], torch.eye(3, 2, dtype=torch.int64))),
    (StatScores(), (SCORES[0][:, 1], SCORES[1])),
    (StatScores(num_classes=2, ignore_index=1), SCORES),
    (StatScores(num_labels=2), (SCORES[0], torch.eye(3, 2, dtype=torch.int64))),
    (Precision(), (SCORES[0][:, 1], SCORES[1])),
    *((Precision(num_classes=2, average=each), SCORES) for each in ("micro", "macro", "weighted", None)),
    (JaccardIndex(num_labels=2), (SCORES[0], torch.eye(3, 2, dtype=torch.int64))),
    (Perplexity(), (torch.randn(2, 3, 4), torch.tensor([[0, 1, 2], [3, 0, 1]]))),
    (WordInfoLost(), TEXTS),
    (WordInfoPreserved(), TEXTS),
    (Max(), NUMBERS[:1]),
    (Min(), (NUMBERS[0].double(),)),
    (Min(nan_policy="ignore"), (torch.tensor([-0.0, float("inf"), 1.0]),)),
    *((PeakSignalNoiseRatio(data_range=each), PICTURES) for each in (1, 2.0, 0.375, 255, 256)),
    (PeakSignalNoiseRatio(data_range=1.0, per_image=True), PICTURES),
    (ErrorRelativeGlobalDimensionlessSynthesis(), PICTURES),
    (SpectralAngleMapper(), PICTURES),
    *((TotalVariation(reduction=each), PICTURES[:1]) for each in ("sum", "mean")),
    (SignalNoiseRatio(), (PICTURES[0].flatten(1), PICTURES[1].flatten(1))),
]


@needs_compiled_code
@pytest.mark.parametrize(("metric", "batch"), PLAIN)
def test_values_are_read_in_one_step(metric, batch):
    meter = Meter(value=metric)
    meter.update(*batch)
    plain = plain_value(meter, "value")
    assert plain is not None
    assert bits(plain) == bits(long_way(meter)) == bits(meter.compute()["value"])


@needs_compiled_code
@pytest.mark.parametrize("data_range", [1, 2.0, 0.375, 3.5, 97, 255, 256])
def test_a_peak_ratio_that_is_read_in_one_step_is_the_logarithm_of_the_exact_ratio(data_range):
    meter = Meter(value=PeakSignalNoiseRatio(data_range=data_range))
    for preds, target in ((PICTURES[0], PICTURES[1]), (PICTURES[1], PICTURES[0] * 0.25)):
        meter.update(preds, target)
    pairs = [*zip(PICTURES[0].flatten().tolist(), PICTURES[1].flatten().tolist(), strict=True)]
    pairs += zip(PICTURES[1].flatten().tolist(), (PICTURES[0] * 0.25).flatten().tolist(), strict=True)
    error = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in pairs) / len(pairs)
    assert plain_value(meter, "value") == 10 * math.log10(Fraction(data_range) ** 2 / error)


@needs_compiled_code
@pytest.mark.parametrize("scale", [1e-170, 1e160])
def test_a_peak_ratio_beyond_what_is_exact_is_computed(scale):
    meter = Meter(value=PeakSignalNoiseRatio(data_range=0.375))
    meter.update(PICTURES[0].double() * scale, PICTURES[1].double())
    meter.update(PICTURES[0].double() * scale, PICTURES[1].double() * scale)
    plain = plain_value(meter, "value")
    assert plain is None or bits(plain) == bits(long_way(meter))
    assert bits(meter.compute()["value"]) == bits(long_way(meter))
    equal = Meter(value=PeakSignalNoiseRatio(data_range=1.0))
    equal.update(PICTURES[0], PICTURES[0])
    assert plain_value(equal, "value") is None
    assert equal.compute()["value"] == math.inf


@needs_compiled_code
def test_a_span_with_many_digits_is_not_read_in_one_step():
    meter = Meter(value=PeakSignalNoiseRatio(data_range=0.1))
    meter.update(PICTURES[0], PICTURES[1])
    assert plain_value(meter, "value") is None


def test_without_compiled_code_there_is_no_plain_value():
    meter = Meter(value=Mean())
    meter.update(torch.tensor([1.0, 2.0]))
    with in_torch():
        assert plain_value(meter, "value") is None
        assert meter.compute()["value"] == 1.5


@needs_compiled_code
def test_metrics_that_share_their_sums_are_read_from_the_whole_of_them():
    meter = Meter(value=MeanSquaredError(), r2=R2Score(), mae=MeanAbsoluteError())
    meter.update(*NUMBERS)
    exact = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(*(each.tolist() for each in NUMBERS), strict=True)) / 3
    assert len(meter.tallies) == 1
    assert plain_value(meter, "value").item() == float(exact)
    assert bits(plain_value(meter, "r2")) == bits(Meter(R2Score()).values_of(*NUMBERS)["R2Score"])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_reported(bad):
    meter = Meter(value=Mean())
    meter.update(torch.tensor([1.0, bad]))
    assert plain_value(meter, "value") is None
    with pytest.warns(InvalidValuesWarning, match="1 of the values"):
        torch.testing.assert_close(meter.compute()["value"].item(), bad, equal_nan=True)


def test_an_infinite_sum_of_rows_is_left_to_compute():
    meter = Meter(value=KLDivergence())
    meter.update(torch.tensor([[0.5, 0.5], [1.0, 0.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    assert plain_value(meter, "value") is None
    assert meter.compute()["value"] == float("inf")


def test_nan_that_is_left_out_is_reported():
    meter = Meter(value=Mean(nan_policy="warn"))
    meter.update(torch.tensor([1.0, float("nan")]))
    assert plain_value(meter, "value") is None
    with pytest.warns(InvalidValuesWarning, match="1 of the"):
        assert meter.compute()["value"] == 1


@pytest.mark.parametrize(("metric", "batch"), [(Mean(), NUMBERS[:1]), (LogLoss(num_classes=2), SCORES)])
def test_invalid_weights_raise(metric, batch):
    meter = Meter(value=metric, weighted=True)
    meter.update(*batch, weights=torch.tensor([1.0, -1.0, 2.0]))
    assert plain_value(meter, "value") is None
    with pytest.raises(InvalidValuesError, match="of the weights"):
        meter.compute()


@pytest.mark.parametrize("metric", [LogLoss(num_classes=2), ConfusionMatrix(num_classes=2), StatScores(num_classes=2)])
@pytest.mark.parametrize("bad", [-1, 2, 7])
def test_invalid_labels_raise(metric, bad):
    meter = Meter(value=metric)
    meter.update(SCORES[0], torch.tensor([0, 1, bad]))
    assert plain_value(meter, "value") is None
    with pytest.raises(InvalidValuesError, match="1 of the"):
        meter.compute()


@needs_compiled_code
def test_invalid_predictions_raise():
    meter = Meter(value=ConfusionMatrix(num_classes=2), counts=StatScores(num_classes=2))
    meter.update(torch.tensor([[0.5, float("nan")], [0.0, 1.0]]), torch.tensor([0, 1]))
    assert plain_value(meter, "value") is plain_value(meter, "counts") is None
    with pytest.raises(InvalidValuesError, match="1 of the"):
        meter.compute()


def test_extremes_of_nan_and_of_integers_are_left_to_compute():
    meter = Meter(value=Max(nan_policy="ignore"))
    meter.update(torch.tensor([1.0, float("nan")]))
    assert plain_value(meter, "value") is None
    assert meter.compute()["value"] == 1
    whole = Meter(value=Max())
    whole.update(torch.tensor([3.0]))
    whole.update(torch.tensor([2**62 + 1]))
    assert plain_value(whole, "value") is None
    assert whole.compute()["value"] == 2.0**62


@needs_compiled_code
@pytest.mark.parametrize(("value", "largest"), [(-2.5, 1.0), (2.5, 2.5), (1.0, 1.0)])
def test_the_largest_number_of_two_dtypes(value, largest):
    meter = Meter(value=Max(), least=Min())
    meter.update(torch.tensor([1.0]))
    meter.update(torch.tensor([value], dtype=torch.float64))
    assert plain_value(meter, "value") == largest
    assert plain_value(meter, "least") == min(1.0, value)


def test_no_data_and_divisors_of_zero_are_left_to_compute():
    meter = Meter(value=Mean())
    assert plain_value(meter, "value") is None
    with pytest.warns(NoDataWarning):
        assert meter.compute()["value"].isnan()
    constant = Meter(value=R2Score())
    constant.update(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 3.0]))
    assert plain_value(constant, "value") is None


def test_other_values_are_no_quotients():
    meter = Meter(value=Variance(), several=Mean() + Sum())
    assert meter.plan.reading_of("value") is None
    assert meter.plan.reading_of("several") is None


@dataclass(frozen=True)
class RowMeans(RowMeanMetric):
    """The means of two numbers that each row gives."""

    row_name = "number"
    row = RowNumbers(2)


def test_means_of_several_numbers_are_left_to_compute():
    meter = Meter(value=RowMeans())
    meter.update(torch.tensor([[1.0, 5.0], [2.0, 7.0]]))
    assert plain_value(meter, "value") is None
    assert meter.compute()["value"].tolist() == [1.5, 6.0]


@dataclass(frozen=True)
class DoubledError(MeanSquaredError):
    """A metric with a `compute` of its own."""

    def compute(self, counts):
        return 2 * super().compute(counts)


def test_a_compute_of_ones_own_is_asked():
    meter = Meter(value=DoubledError(), other=MeanSquaredError())
    meter.update(*NUMBERS)
    assert plain_value(meter, "value") is None
    values = meter.compute()
    assert values["value"] == 2 * values["other"]


@needs_compiled_code
@pytest.mark.parametrize("metric", [MeanSquaredError(), Max(), ConfusionMatrix(num_classes=2)], ids=repr)
def test_forward_reads_a_value_in_one_step(metric, monkeypatch):
    batch = {"preds": torch.tensor([0, 1, 1]), "target": torch.tensor([1, 1, 0])}
    if isinstance(metric, Max):
        batch = {"preds": torch.tensor([0.5, 2.0, -1.0])}
    expected = bits(metric(**batch))
    monkeypatch.setattr(type(metric), "compute", lambda self, counts: pytest.fail("the long way"))
    meter = Meter(value=metric)
    for _ in range(3):
        assert bits(meter.forward(**batch)["value"]) == expected


KEPT = [SpearmanCorrCoef(), AUROC(), LogAUC(), MutualInfoScore(), CramersV()]


@pytest.mark.parametrize("metric", KEPT, ids=repr)
def test_forward_counts_a_copy_of_the_samples_of_a_batch(metric):
    together, stepwise, totals = Meter(value=metric), Meter(value=metric), []
    preds, target = torch.tensor([0.1, 0.4, 0.35, 0.8, 0.2, 0.6]), torch.tensor([0, 0, 1, 1, 0, 1])
    if metric.inputs == "clusters":
        preds = torch.tensor([0, 0, 2, 2, 2, 1])
    for step in range(3):
        alone = Meter(value=metric)
        alone.update(preds, target)
        together.update(preds, target)
        totals.append(bits(stepwise.forward(preds, target)["value"]) == bits(alone.compute()["value"]))
        preds[step : step + 2] = preds[step : step + 2].flip(0)  # the next batch, in the same memory
    assert all(totals)
    assert bits(stepwise.compute()["value"]) == bits(together.compute()["value"])


@every(CASES)
@pytest.mark.filterwarnings("ignore::assay.errors.NoDataWarning")
def test_the_value_of_a_batch_stays_when_the_next_one_is_counted(case):
    batches = [case.data(seed, count) for seed, count in ((1, 23), (2, 23), (3, 23), (4, 40))]
    stepwise, values, expected = case.counted(), [], []
    stepwise.reset()
    for batch in batches:
        given = {"weights": batch.weights, **batch.columns}
        values.append(stepwise.forward(batch.preds, batch.target, **given)["value"])
        expected.append(bits(values[-1]))
        alone = case.counted(batch).forward(batch.preds, batch.target, **given)["value"]
        assert expected[-1] == bits(alone)
    assert [bits(value) for value in values] == expected
    assert bits(stepwise.compute()["value"]) == bits(case.counted(*batches).compute()["value"])


@pytest.mark.parametrize("metric", KEPT, ids=repr)
def test_forward_keeps_no_tensor_of_the_caller(metric):
    meter = Meter(value=metric)
    for _ in range(3):
        preds, target = torch.tensor([0, 1, 0, 1, 1, 0]), torch.tensor([0, 0, 1, 1, 0, 1])
        preds = preds if metric.inputs == "clusters" else preds / 2
        meter.forward(preds, target)
        alive = weakref.ref(preds), weakref.ref(target)
        del preds, target
        gc.collect()
        assert [each() for each in alive] == [None, None]
