"""Random calls and random data: a class or function under TorchMetrics' name gives the number that TorchMetrics gives.

`DIFFERENT` lists the names whose values are others in some cases, each with the reason.
"""

from __future__ import annotations

from importlib import import_module

import pytest
import torch
from torch import Tensor

from assay.compat import drop_ins, torchmetrics
from assay.errors import InvalidValuesError
from assay.migrate.table import library
from migrate.test_draws import Drawn
from migrate.test_draws import same as same_or_undefined
from migrate.test_table import theirs
from migrate.test_values import ran_with
from thinning import every_third

OTHERS = {*drop_ins.FAMILIES, *drop_ins.FAMILY_FUNCTIONS}
ENTRIES = [entry for entry in library("torchmetrics").entries.values() if not entry.tasks and entry.name not in OTHERS]

DIFFERENT = {
    "AveragePrecision": "without thresholds, whether a class has targets is asked of class 1 there",
    "PrecisionRecallCurve": "as AveragePrecision",
    "PrecisionAtFixedRecall": "of several thresholds with the same precision, another one",
    "RecallAtFixedPrecision": "of several thresholds with the same recall, another one",
    "CalibrationError": "NaN without data",
    "NegativePredictiveValue": "zero_division, which the classes there do not follow, and the functions do",
    "ExactMatch": "a sample whose labels are all ignored is not right",
    "MatthewsCorrCoef": "0 where it is 0 / 0; a float where it is 1 or -1",
    "LogAUC": "infinite or 0 there, where all false positive rates lie beyond the range",
    "JaccardIndex": "0 where no class has data",
    "MultilabelCoverageError": "ignored labels leave their row",
    "MultilabelRankingAveragePrecision": "ignored labels leave their row; equal scores",
    "MultilabelRankingLoss": "ignored labels leave their row",
    "ConcordanceCorrCoef": "the function gives one number of the shape () and not (1,); a constant beside numbers",
    "CriticalSuccessIndex": "NaN without any event",
    "ExplainedVariance": "a constant target",
    "R2Score": "a constant target",
    "RelativeSquaredError": "infinite for a constant target",
    "SpearmanCorrCoef": "NaN for a constant",
    "AdjustedMutualInfoScore": "1 for one cluster and one class",
    "NormalizedMutualInfoScore": "1 for one cluster and one class",
    "CramersV": "the correction of the bias, of two categories each",
    "TschuprowsT": "the correction of the bias, of two categories each",
    "TheilsU": "NaN for a constant",
    "CHRFScore": "as sacrebleu",
}


ANOTHER_THRESHOLD = ("PrecisionAtFixedRecall", "RecallAtFixedPrecision")


def same(ours, other, types: bool = True) -> bool:
    """Whether a value has the numbers and the shape of another, and its dtype."""
    if isinstance(other, tuple | list):
        parts = zip(ours, other, strict=True)
        return type(ours) is type(other) and all(same(one, two, types) for one, two in parts)
    if ours.shape != other.shape or (types and ours.dtype != other.dtype):
        return False
    return torch.allclose(ours.double(), other.double(), rtol=1e-3, atol=1e-5, equal_nan=True)


def of_assay(code: str) -> str:
    return code.replace("from torchmetrics", "from assay.compat.torchmetrics")


def check_draw(entry, seed: int) -> bool:
    drawn = Drawn(entry, seed)
    if drawn.given.get("top_k", "1") != "1" and drawn.ties:
        return True  # which of equal scores come first is open there
    try:
        expected = ran_with(drawn.code, drawn.batch)
    except (ValueError, RuntimeError, IndexError):  # they refuse some data that is ignored, or fail
        return True
    ours = ran_with(of_assay(drawn.code), drawn.batch)
    if entry.assay not in DIFFERENT:
        return same(ours, expected)
    if entry.assay == "NegativePredictiveValue" and drawn.given.get("zero_division") == "1":
        return True
    if entry.assay == "CHRFScore" or entry.assay in ANOTHER_THRESHOLD:
        return True
    if isinstance(expected, Tensor):
        ours = ours.reshape_as(expected)  # of the shape (1,) in a function of TorchMetrics
    return drawn.documented or same_or_undefined(ours, expected)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_a_random_call_gives_the_value_of_torchmetrics(entry):
    assert check_draw(entry, 0)


@pytest.mark.slow
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_random_calls_give_the_values_of_torchmetrics(entry):
    assert [seed for seed in range(1, 24) if not check_draw(entry, seed)] == []


DTYPES_DIFFERENT = {
    "BinaryCalibrationError": "the class keeps the scores, in their dtype",
    "BinaryMatthewsCorrCoef": "an integer where it is 0 / 0",
    "binary_matthews_corrcoef": "an integer where it is 0 / 0",
    "MultilabelMatthewsCorrCoef": "an integer where it is 0 / 0",
    "KendallRankCorrCoef": "variant c is in the dtype of the data",
    "kendall_rank_corrcoef": "variant c is in the dtype of the data",
    "TweedieDevianceScore": "float32 where the power is none of 0, 1 and 2",
    "tweedie_deviance_score": "float32 where the power is none of 0, 1 and 2",
}
OF_CURVES = ("Fixed", "fixed", "AtSpecificity", "at_specificity", "AtSensitivity", "at_sensitivity")
OF_CURVES += ("Curve", "curve", "ROC", "roc", "LogAUC", "logauc")
"""Metrics of which some parts are in the dtype of the scores there, which differ from draw to draw."""


@every_third
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_the_dtype_of_a_value_is_that_of_torchmetrics(entry, dtype):
    """Of functions that of the data or float32, and of classes float32, or float64 where their states become so."""
    if entry.name in DTYPES_DIFFERENT or any(each in entry.name for each in OF_CURVES):
        pytest.skip("another dtype in some cases")
    for seed in range(3):
        drawn = Drawn(entry, seed)
        floats = [isinstance(each, Tensor) and each.is_floating_point() for each in drawn.batch]
        if not any(floats):
            continue
        batch = tuple(each.to(dtype) if is_float else each for each, is_float in zip(drawn.batch, floats, strict=True))
        try:
            expected = ran_with(drawn.code, batch)
        except (IndexError, RuntimeError, ValueError):
            continue
        assert ran_with(of_assay(drawn.code), batch).dtype == expected.dtype


CLASSES = [
    entry for entry in ENTRIES if not entry.function and entry.name.startswith(("Binary", "Multiclass", "Multilabel"))
]
REQUIRED = {"num_classes": 3, "num_labels": 3, "beta": 0.5, "p": 3, "threshold": 0.5} | {
    f"min_{each}": 0.5 for each in ("precision", "recall", "sensitivity", "specificity")
}


def both(name: str):
    """The class of TorchMetrics and the compatible one."""
    original = theirs("torchmetrics", name)
    return original, getattr(import_module(f"assay.compat.{original.__module__}"), name)


def batches(entry, half: bool):
    """Two batches: logits of several positions a sample, or probabilities in half precision."""
    generator = torch.Generator().manual_seed(7)
    classes = () if entry.name.startswith("Binary") else (3,)
    extra = () if half else (2, 2)
    for _ in range(2):
        scores = 4 * torch.randn(24, *classes, *extra, generator=generator)
        high, of_target = (3, ()) if entry.name.startswith("Multiclass") else (2, classes)
        target = torch.randint(high, (24, *of_target, *extra), generator=generator)
        if half:
            scores = (scores.softmax(1) if entry.name.startswith("Multiclass") else scores.sigmoid()).half()
        yield scores, target


def arguments(entry) -> dict[str, object]:
    names = [each.name for each in entry.takes if each.default is None or each.name == entry.needs]
    return {name: REQUIRED[name] for name in names}


def run(kind, given, updates):
    metric = kind(**given)
    return [*(metric(*each) for each in updates), metric.compute()]


@every_third
@pytest.mark.parametrize("half", [False, True], ids=["logits", "half precision"])
@pytest.mark.parametrize("entry", CLASSES, ids=lambda entry: entry.name)
def test_scores_are_taken_as_torchmetrics_takes_them(entry, half):
    if half and entry.assay == "LogAUC":
        pytest.skip("TorchMetrics computes it in half precision")
    original, ours = both(entry.name)
    updates = list(batches(entry, half))
    given = arguments(entry)
    try:
        expected = run(original, given, updates)
    except (ValueError, RuntimeError):
        pytest.skip("TorchMetrics does not take this data")
    for one, two in zip(run(ours, given, updates), expected, strict=True):
        if entry.assay in ANOTHER_THRESHOLD:
            one, two = one[0], two[0]
        assert same(one, two, types=not half)


@every_third
@pytest.mark.parametrize("entry", CLASSES, ids=lambda entry: entry.name)
def test_labels_may_be_floats(entry):
    original, ours = both(entry.name)
    given = arguments(entry)
    scores, target = next(batches(entry, half=True))
    expected = run(ours, given, [(scores, target)])
    try:
        there = run(original, given, [(scores, target.float())])
    except (ValueError, RuntimeError):  # which only metrics of curves refuse
        there = expected
    found = run(ours, given, [(scores, target.float())])
    for one, two, three in zip(found, expected, there, strict=True):
        torch.testing.assert_close(one, two, rtol=0, atol=0, equal_nan=True)
        assert entry.assay == "LogAUC" or same(one, three, types=False)
    metric = ours(**given)
    metric.update(scores, target + 0.5)
    with pytest.raises(InvalidValuesError, match="24" if "Multilabel" not in entry.name else "72"):
        metric.compute()


@pytest.mark.parametrize("entry", [each for each in ENTRIES if not each.function], ids=lambda entry: entry.name)
def test_a_value_without_samples_is_that_of_torchmetrics(entry, recwarn):
    original, ours = both(entry.name)
    given = arguments(entry)
    found = ours(**given).compute()
    try:
        expected = original(**given).compute()
    except (IndexError, RuntimeError, ValueError):
        expected = found  # there it is an error
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", ["ROC", "PrecisionRecallCurve", "RecallAtFixedPrecision", "SensitivityAtSpecificity"])
@pytest.mark.parametrize("kind", ["Binary", "Multiclass", "Multilabel"])
def test_thresholds_of_float64_are_not_rounded(name, kind):
    original, ours = both(kind + name)
    given = arguments(library("torchmetrics").entries[kind + name])
    generator = torch.Generator().manual_seed(5)
    preds = torch.rand((20,) if kind == "Binary" else (20, 3), dtype=torch.float64, generator=generator)
    shape = preds.shape if kind == "Multilabel" else (20,)
    target = torch.randint(3 if kind == "Multiclass" else 2, shape, generator=generator)
    expected = original(**given)(preds, target)
    metrics = torchmetrics.MetricCollection({"a": ours(**given), "b": ours(**given)})
    for found in (ours(**given)(preds, target), metrics(preds, target)["b"], metrics.compute()["b"]):
        thresholds, wanted = (each[-1] if isinstance(each[-1], list) else [each[-1]] for each in (found, expected))
        assert {each.dtype for each in thresholds} == {each.dtype for each in wanted} == {torch.float64}
        if name != "RecallAtFixedPrecision":  # of several thresholds with the same recall, another one
            assert all(map(torch.equal, thresholds, wanted))


def test_targets_of_translations_may_be_strings():
    texts, targets = ["a b cd e f", "g a b a cd"], ["a b cd g", "b a b cd e f"]
    expected = theirs("torchmetrics", "bleu_score")(texts, targets, n_gram=2)
    assert torchmetrics.text.BLEUScore(n_gram=2)(texts, targets) == expected
