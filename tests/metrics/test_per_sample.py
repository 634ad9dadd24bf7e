"""What samples contribute: for every metric its mean is the value, or there is a reason why it has none."""

from __future__ import annotations

import pytest
import torch

from assay.devices import policy
from assay.errors import DtypeError, ShapeError
from assay.metrics import (
    AUROC,
    Accuracy,
    BrierScore,
    CalibrationError,
    ConfusionMatrix,
    ExactMatch,
    F1Score,
    LogLoss,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    PearsonCorrCoef,
    Precision,
    R2Score,
    Recall,
    SpearmanCorrCoef,
)
from assay.metrics.per_sample import per_sample_values, predictions
from assay.report import Samples, Value
from assay.stats.scales import SCALES
from laws import CASES, bits, value, wide, wide_values
from thinning import every

COUNT = 200


_OF_CURVES = ("RetrievalPrecisionRecallCurve", "RetrievalRecallAtFixedPrecision")


def states_no_mean(metric):
    """Whether its class says nothing of single samples."""
    return type(metric).per_sample is Metric.per_sample or not getattr(metric, "per_sample_terms", True)


def reason(case):
    """Why a case has no contributions; empty where it must have some."""
    metric, name = case.metric, type(case.metric).__name__
    several = metric.inputs in ("pairs", "positive pairs") and case.data(0, 2).preds.ndim > 1
    if states_no_mean(metric):
        return "is no mean"  # as the next test holds
    if name in ("CanberraDistance", "MinkowskiDistance", "WaveHedgesDistance"):
        return "is a total"
    if name in ("GeometricMeanAbsoluteError", "NormalizedRootMeanSquaredError") or name.endswith("LikelihoodRatio"):
        return "is a function of means"
    if metric.family == "retrieval" and (not metric.by_row or name in _OF_CURVES):
        return "a sample is a document, or the value is of a mean curve"
    if getattr(metric, "aggregation", "mean") != "mean":
        return "is no mean of the queries"
    if name == "PerSample" and metric.numbers and not metric.number:
        return "has several numbers"
    if name == "EntityF1Score" and metric.average != "micro":
        return "averages over types"
    if getattr(metric, "reduction", "mean") == "sum":
        return "is a sum"
    if getattr(metric, "multidim_average", "global") == "samplewise":
        return "has a value a class" if getattr(metric, "average", "") is None else ""
    if getattr(metric, "per_class", False):
        return "has a value a class"
    if name == "PeakSignalNoiseRatio" and not metric.per_image:
        return "is a function of a mean"
    if getattr(metric, "multiclass_mode", "") == "one-vs-all":
        return "has a value a class"
    if name != "ExactMatch" and case.draw.__name__.startswith("multiclass_images"):
        return "a row is an image"
    if getattr(metric, "num_classes", None) and hasattr(metric, "average"):
        pooled = metric.average == "micro" and name not in ("JaccardIndex", "Specificity", "NegativePredictiveValue")
        return "" if pooled else "averages over classes"
    if getattr(metric, "num_labels", None) and hasattr(metric, "average"):
        by_label = metric.average == "macro" and name in ("Accuracy", "HammingDistance")
        return "" if metric.average == "micro" or by_label else "averages over labels"
    if several and name not in ("CosineSimilarity", "KLDivergence"):
        return "a row has several outputs"
    return ""


def values_of(case, data):
    return per_sample_values(case.metric, *data[:3], **data.columns)


def mean(found, scale=""):
    """The value that contributions say."""
    columns = {name: column.double() for name, column in found.terms.items()}
    above = columns[found.numerator].mean()
    mean = above / columns[found.denominator].mean() if found.denominator else above
    return torch.tensor(SCALES[scale].of(mean.numpy()))


@every(CASES, turns=1)
def test_the_mean_of_contributions_is_the_value_or_there_is_a_reason(case, count_ops):
    data = case.data(7, COUNT)
    few = data.rows(slice(2))
    values_of(case, few)
    with count_ops() as counts:
        found = values_of(case, data)
    assert case.raw or counts.syncs == []  # encoders read on the CPU
    assert (found is None) == bool(reason(case))
    if found is None:
        return
    assert all(column.shape == (COUNT,) and column.device.type == "cpu" for column in found.terms.values())
    assert found.terms.keys() == {found.numerator, *([found.denominator] if found.denominator else [])}
    expected = value(case.counted(data))["value"]
    if case.draw in (wide, wide_values) and (case.weighted or "squared" in found.numerator):
        assert mean(found).isinf()  # values up to 3e38 are beyond float32 when squared, or times a weight
        return
    torch.testing.assert_close(mean(found, case.metric.scale), expected, rtol=1e-6, atol=0)
    numbers = {name: column.numpy() for name, column in found.terms.items()}
    columns = {"numerator": found.numerator, "denominator": found.denominator, "scale": case.metric.scale}
    told = Value("value", float(expected), **columns)
    told.check_terms(Samples.pack(range(COUNT), numbers))


@every(CASES)
def test_a_single_number_without_contributions_is_no_mean(case):
    """The mean over twice as many samples is the mean of the values of both halves."""
    if case.weighted or not states_no_mean(case.metric):
        return
    differs = []
    for seed in range(4):
        data = case.data(seed, 2 * COUNT)
        parts = (slice(None), slice(COUNT), slice(COUNT, None))
        whole, first, second = (value(case.counted(data.rows(part)))["value"] for part in parts)
        if not isinstance(whole, torch.Tensor) or whole.ndim:
            return
        if not whole or whole.isinf():  # of so few samples
            return
        differs.append(not torch.allclose(whole, (first + second) / 2, rtol=1e-6))
    assert True in differs


@pytest.mark.exhaustive
def test_equal_names_are_equal_numbers():
    seen = {}
    for case in CASES:
        found = values_of(case, case.data(7, COUNT))
        for name, column in found.terms.items() if found else ():
            samples = case.draw.__name__, *sorted(case.data(7, 1).columns), case.weighted, case.whole_weights
            known = seen.setdefault((*samples, name), column)
            assert torch.equal(known, column) or torch.allclose(known, column.to(known.dtype), rtol=1e-6), (case, name)
    assert len(seen) > 50


@pytest.mark.devices("mps", "cuda:1", "xpu")
@every([case for case in CASES if not case.raw])
def test_on_every_device_nothing_waits_and_the_columns_are_the_cpus(case, device, pretended):
    events = pretended.events if pretended else []
    policy(device)  # the self-test of a device at its first use reads what it computed
    data = case.data(7, 33)
    there = data.map(lambda x: x.to(device))
    events.clear()
    found, decided = values_of(case, there), predictions(case.metric, *there[:2], **there.columns)
    assert [str(event) for event in events] == []
    expected = values_of(case, data)
    assert (found is None) == (expected is None)
    for name, column in found.terms.items() if found else ():
        assert column.device == device
        if pretended:
            assert bits(column.cpu()) == bits(expected.terms[name])
        else:  # terms have the rounding of the device
            torch.testing.assert_close(column.cpu(), expected.terms[name], rtol=1e-5, atol=0, equal_nan=True)
    if decided is not None:
        assert decided.device == device
        assert torch.equal(decided.cpu(), predictions(case.metric, *data[:2], **data.columns))


def columns(metric, *given):
    found = per_sample_values(metric, *map(torch.tensor, given))
    return {name: column.tolist() for name, column in found.terms.items()}


def test_names_say_what_decides():
    scores, target = [0.2, 0.6, 0.9], [1, 1, 0]
    assert columns(Accuracy(), scores, target) == {"correct": [False, True, False]}
    assert columns(Accuracy(threshold=0.1), scores, target) == {"correct, threshold 0.1": [True, True, False]}
    assert columns(Precision(), scores, target) == {
        "true positives": [False, True, False],
        "predicted positives": [False, True, True],
    }
    assert columns(Recall(ignore_index=-1), scores, [1, 1, -1]) == {
        "true positives, without -1": [False, True, False],
        "positives, without -1": [True, True, False],
    }
    assert columns(F1Score(), scores, target)["mean of positives and predicted positives"] == [0.5, 1, 0.5]
    rows = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
    assert columns(Accuracy(num_classes=3, top_k=2), rows, [1, 0]) == {"correct, top 2": [True, False]}
    assert columns(Accuracy(num_classes=3, average="weighted"), rows, [0, 0]) == {"correct": [True, False]}


def test_a_sample_with_several_labels_contributes_their_mean():
    preds, target = [[0.9, 0.1], [0.9, 0.9]], [[1, 1], [1, 0]]
    assert columns(Accuracy(num_labels=2), preds, target) == {"correct": [0.5, 0.5]}
    assert columns(Recall(num_labels=2, average="micro"), preds, target) == {
        "true positives": [0.5, 0.5],
        "positives": [1.0, 0.5],
    }
    assert columns(ExactMatch(num_labels=2), preds, target) == {"all labels correct": [False, False]}
    ignoring = columns(ExactMatch(num_labels=2, ignore_index=-1), preds, [[1, -1], [-1, -1]])
    assert ignoring == {
        "all labels correct, without -1": [True, False],
        "some label counted, without -1": [True, False],
    }


def test_weights_are_multiplied_in():
    assert columns(MeanAbsoluteError(), [1.0, 2.0], [2.0, 4.0], [3, 1]) == {
        "absolute error, weighted": [3.0, 2.0],
        "weight": [3.0, 1.0],
    }
    assert columns(Mean(nan_policy="ignore"), [1.0, float("nan")]) == {
        "value, without NaN": [1.0, 0.0],
        "known value": [True, False],
    }


def test_an_error_is_exact_where_dtypes_differ():
    target = torch.tensor([2**24 + 1, -(2**40) - 1, 5])
    preds = torch.tensor([2.0**24, -(2.0**40), 4.5])
    for given in ((preds, target), (target, preds)):
        found = per_sample_values(MeanAbsoluteError(), *given)
        assert found.terms["absolute error"].tolist() == [1.0, 1.0, 0.5]
    whole = per_sample_values(MeanSquaredError(), target, target + 1).terms["squared error"]
    assert whole.dtype == torch.float32
    assert whole.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("metric", "preds", "target", "expected"),
    [
        (Accuracy(num_classes=3, top_k=2), [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]], [1, 0], [0, 1]),
        (Accuracy(threshold=0.7), [0.6, 0.8], [1, 0], [0, 1]),
        (ConfusionMatrix(num_classes=3), [2, 0], [1, 0], [2, 0]),
        (CalibrationError(num_classes=2), [[0.4, 0.6], [0.5, 0.5]], [1, 0], [1, 0]),
        (MeanSquaredError(), [0.5, 1.5], [1.0, 1.0], [0.5, 1.5]),
        (R2Score(), [[0.5], [1.5]], [[1.0], [1.0]], [0.5, 1.5]),
        (SpearmanCorrCoef(), [0.5, 1.5], [1.0, 1.0], [0.5, 1.5]),
        (PearsonCorrCoef(), [0.5, 1.5], [1.0, 1.0], [0.5, 1.5]),
        (AUROC(), [0.5, 0.7], [1, 0], None),
        (LogLoss(), [0.5, 0.7], [1, 0], None),
        (CalibrationError(), [0.5, 0.7], [1, 0], None),
        (Accuracy(num_labels=2), [[0.5, 0.7]], [[1, 0]], None),
        (PearsonCorrCoef(num_outputs=2), [[0.5, 0.7]], [[1.0, 0.0]], None),
        (Mean(), [0.5, 0.7], None, None),
    ],
    ids=str,
)
def test_decisions_are_labels_or_predictions(metric, preds, target, expected):
    found = predictions(metric, torch.tensor(preds), None if target is None else torch.tensor(target))
    assert (None if found is None else found.tolist()) == expected


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float64])
def test_other_dtypes_give_the_columns_of_their_values(dtype):
    preds, target = torch.tensor([0.25, 0.5, 1.0]).to(dtype), torch.tensor([0, 1, 1])
    for metric in (BrierScore(), LogLoss(), Accuracy(), MeanSquaredError()):
        found = per_sample_values(metric, preds, target)
        expected = metric(preds, target)
        torch.testing.assert_close(mean(found), expected, rtol=1e-6, atol=0)


def test_an_image_is_no_sample_and_one_number_is():
    assert per_sample_values(Accuracy(), torch.rand(2, 3), torch.ones(2, 3, dtype=torch.int64)) is None
    assert per_sample_values(Mean(), torch.tensor(3.0)).terms["value"].tolist() == [3.0]
    assert per_sample_values(MeanAbsoluteError(), torch.rand(2), torch.rand(2), torch.rand(2)).denominator == "weight"


def test_what_an_update_refuses_is_refused():
    with pytest.raises(ShapeError, match=r"^target: got 3 samples, expected as many as preds has, 2"):
        per_sample_values(Accuracy(), torch.rand(2), torch.ones(3, dtype=torch.int64))
    with pytest.raises(DtypeError, match=r"^target: got torch.float32, expected an integer or bool dtype"):
        predictions(Accuracy(), torch.rand(2), torch.rand(2))
