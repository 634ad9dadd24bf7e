"""Metrics under TorchEval's names give what TorchEval's give: random batches, merged, saved and loaded."""

from __future__ import annotations

import inspect
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch

original: Any = pytest.importorskip("torcheval.metrics")
functional: Any = pytest.importorskip("torcheval.metrics.functional")

from assay.compat.torcheval.metrics import toolkit  # noqa: E402

from assay.compat import torcheval  # noqa: E402
from assay.errors import InvalidValuesError, StateError  # noqa: E402
from assay.pretend import pretend  # noqa: E402
from ranks import processes  # noqa: E402

pytestmark = [  # of TorchEval's own code
    pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter:UserWarning"),
    pytest.mark.filterwarnings("ignore:To copy construct from a tensor:UserWarning"),
]
GENERATOR = torch.Generator().manual_seed(29)
ROWS = 12


def rand(*shape: int) -> torch.Tensor:
    return torch.randint(0, 40, shape, generator=GENERATOR) / 40


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def labels(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(high, shape, generator=GENERATOR)


TEXTS = ["the cat sat on the mat", "a dog ran in the park today", "no one is here or there", "it is late now in town"]
KINDS: dict[str, Any] = {
    "binary": lambda: (rand(ROWS), labels(2, ROWS)),
    "classes": lambda: (torch.arange(ROWS) % 4, labels(4, ROWS)),
    "scores": lambda: (randn(ROWS, 4), labels(4, ROWS)),
    "rare scores": lambda: (randn(ROWS, 4), labels(2, ROWS)),
    "labels": lambda: (rand(ROWS, 3), labels(2, ROWS, 3)),
    "tasks": lambda: (rand(2, ROWS), labels(2, 2, ROWS)),
    "numbers": lambda: (randn(ROWS), randn(ROWS)),
    "outputs": lambda: (randn(ROWS, 2), randn(ROWS, 2)),
    "alone": lambda: (randn(ROWS),),
    "clicks": lambda: (labels(2, ROWS),),
    "clicks of tasks": lambda: (labels(2, 2, ROWS),),
    "floats": lambda: (rand(ROWS), labels(2, ROWS).float()),
    "floats of tasks": lambda: (rand(2, ROWS), labels(2, 2, ROWS).float()),
    "tokens": lambda: (randn(2, ROWS, 5), labels(5, 2, ROWS)),
    "texts": lambda: ([TEXTS[k] for k in labels(4, 3)], [TEXTS[k] for k in labels(4, 3)]),
    "references": lambda: ([TEXTS[k] for k in labels(4, 3)], [[TEXTS[k]] for k in labels(4, 3)]),
}
WEIGHTS = {"weight": ("binary", "tasks", "alone", "floats", "floats of tasks"), "weights": ("clicks",)}
CRITERIA = ("exact_match", "hamming", "overlap", "contain", "belong")
CASES: list[tuple[str, dict[str, Any], str, str]] = [
    *((f"Binary{name}", {}, "binary", "") for name in ("Accuracy", "Precision", "Recall", "F1Score", "AUPRC")),
    *((f"Binary{name}", {}, "binary", "") for name in ("AUROC", "PrecisionRecallCurve", "ConfusionMatrix")),
    *((f"Binary{name}", {"threshold": 0.3}, "binary", "") for name in ("Accuracy", "Recall", "ConfusionMatrix")),
    *(
        (f"Multiclass{name}", {"average": average, "num_classes": classes}, kind, "")
        for name in ("Precision", "Recall", "F1Score")
        for average, classes in (("micro", None), ("macro", 4), ("weighted", 4), (None, 4))
        for kind in ("classes", "scores", "rare scores")
        if (name, kind) != ("Recall", "rare scores")  # where TorchEval raises
    ),
    *(
        ("MulticlassAccuracy", {"average": average, "num_classes": 4, "k": k}, kind, "")
        for average in ("micro", "macro", None)
        for k, kind in ((1, "classes"), (1, "rare scores"), (2, "scores"), (3, "rare scores"))
    ),
    *(("MultilabelAccuracy", {"criteria": criteria}, "labels", "") for criteria in CRITERIA),
    *(("TopKMultilabelAccuracy", {"criteria": criteria, "k": 2}, "labels", "") for criteria in CRITERIA),
    *(
        ("MulticlassConfusionMatrix", {"num_classes": 4, "normalize": normalize}, kind, "")
        for normalize in (None, "all", "pred", "true")
        for kind in ("classes", "scores")
    ),
    ("BinaryAUROC", {}, "numbers of classes", ""),
    ("BinaryAUROC", {"num_tasks": 2}, "tasks", "weight"),
    ("BinaryAUROC", {}, "binary", "weight"),
    ("BinaryAUPRC", {"num_tasks": 2}, "tasks", ""),
    *(
        (f"Multiclass{name}", {"num_classes": 4, "average": average}, kind, "")
        for name in ("AUROC", "AUPRC")
        for average in ("macro", None)
        for kind in ("scores", "rare scores")
    ),
    *(("MultilabelAUPRC", {"num_labels": 3, "average": average}, "labels", "") for average in ("macro", None)),
    ("MulticlassPrecisionRecallCurve", {"num_classes": 4}, "rare scores", ""),
    ("MulticlassPrecisionRecallCurve", {}, "scores", ""),
    ("MultilabelPrecisionRecallCurve", {"num_labels": 3}, "labels", ""),
    *(("BinaryRecallAtFixedPrecision", {"min_precision": at}, "binary", "") for at in (0.0, 0.4, 0.9)),
    ("MultilabelRecallAtFixedPrecision", {"num_labels": 3, "min_precision": 0.5}, "labels", ""),
    *(
        (name, {**sizes, "threshold": threshold}, kind, "")
        for name, sizes, kind in (
            ("BinaryBinnedAUPRC", {}, "binary"),
            ("BinaryBinnedAUPRC", {"num_tasks": 2}, "tasks"),
            ("BinaryBinnedAUROC", {}, "binary"),
            ("BinaryBinnedAUROC", {"num_tasks": 2}, "tasks"),
            ("BinaryBinnedPrecisionRecallCurve", {}, "binary"),
            ("MulticlassBinnedAUPRC", {"num_classes": 4}, "rare scores"),
            ("MulticlassBinnedAUPRC", {"num_classes": 4, "average": None}, "scores"),
            ("MulticlassBinnedPrecisionRecallCurve", {"num_classes": 4}, "scores"),
            ("MultilabelBinnedAUPRC", {"num_labels": 3}, "labels"),
            ("MultilabelBinnedPrecisionRecallCurve", {"num_labels": 3}, "labels"),
        )
        for threshold in (5, [0.0, 0.1, 0.5, 1.0])
    ),
    *((name, {}, "alone", weight) for name in ("Mean", "Sum") for weight in ("", "weight")),
    *((name, {}, "alone", "") for name in ("Max", "Min")),
    *(("MeanSquaredError", {}, kind, "") for kind in ("numbers", "outputs")),
    ("MeanSquaredError", {"multioutput": "raw_values"}, "outputs", "sample_weight"),
    *(
        ("R2Score", {"multioutput": multioutput, "num_regressors": free}, kind, "")
        for multioutput in ("uniform_average", "raw_values", "variance_weighted")
        for free in (0, 2)
        for kind in ("numbers", "outputs")
    ),
    ("ClickThroughRate", {}, "clicks", ""),
    ("ClickThroughRate", {}, "clicks", "weights"),
    ("ClickThroughRate", {"num_tasks": 2}, "clicks of tasks", ""),
    *(("WeightedCalibration", {}, "floats", weight) for weight in ("", "weight")),
    ("WeightedCalibration", {"num_tasks": 2}, "floats of tasks", "weight"),
    *(("BinaryNormalizedEntropy", {"from_logits": True}, "floats", weight) for weight in ("", "weight")),
    ("BinaryNormalizedEntropy", {"num_tasks": 2, "from_logits": True}, "floats of tasks", "weight"),
    *(("PeakSignalNoiseRatio", {"data_range": data_range}, "outputs", "") for data_range in (None, 2.0)),
    *(("Perplexity", {"ignore_index": index}, "tokens", "") for index in (None, 2)),
    *((name, {}, "texts", "") for name in ("WordErrorRate",)),
    *(("BLEUScore", {"n_gram": n}, "references", "") for n in (1, 2, 4)),
    ("BLEUScore", {"n_gram": 2, "weights": torch.tensor([0.7, 0.3])}, "references", ""),
    ("WindowedBinaryAUROC", {"max_num_samples": 20}, "binary", "weight"),
    ("WindowedBinaryNormalizedEntropy", {"max_num_updates": 2, "from_logits": True}, "floats", ""),
    ("WindowedClickThroughRate", {"max_num_updates": 2}, "clicks", ""),
    ("WindowedMeanSquaredError", {"max_num_updates": 2}, "numbers", ""),
    ("WindowedMeanSquaredError", {"max_num_updates": 2, "enable_lifetime": False}, "numbers", ""),
    ("WindowedWeightedCalibration", {"max_num_updates": 2}, "floats", "weight"),
]
SQUARED_ERROR, OTHERS_ERROR = torcheval.metrics.functional.mean_squared_error, functional.mean_squared_error
KINDS["numbers of classes"] = lambda: (randn(ROWS), labels(2, ROWS))
IDS = [f"{name}-{kind}-{k}" for k, (name, _, kind, _) in enumerate(CASES)]


def batch_of(kind: str, weight: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    batch = KINDS[kind]()
    shape = batch[0].shape[:1] if weight == "sample_weight" else batch[0].shape if weight else ()
    return batch, {weight: rand(*shape) + 0.1} if weight else {}


def assert_same(own: Any, there: Any, dtype: bool = True) -> None:
    assert type(own) is type(there)
    if isinstance(there, list | tuple):
        assert len(own) == len(there)
        for each, other in zip(own, there, strict=True):
            assert_same(each, other)
    else:
        torch.testing.assert_close(own, there, rtol=2e-5, atol=2e-6, equal_nan=True, check_dtype=dtype)


@pytest.mark.parametrize(("name", "arguments", "kind", "weight"), CASES, ids=IDS)
def test_a_class_gives_the_value_of_torcheval(name: str, arguments: dict[str, Any], kind: str, weight: str) -> None:
    own, there = getattr(torcheval.metrics, name)(**arguments), getattr(original, name)(**arguments)
    for _ in range(3):
        batch, options = batch_of(kind, weight)
        assert own.update(*batch, **options) is own
        there.update(*batch, **options)
    assert isinstance(own, getattr(original, name))
    assert_same(own.compute(), there.compute())
    loaded = getattr(torcheval.metrics, name)(**arguments)
    loaded.load_state_dict(own.state_dict())
    assert_same(loaded.compute(), own.compute())


ONE_OF_EACH = {name: (arguments, kind, weight) for name, arguments, kind, weight in CASES}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_merged_metrics_give_the_value_of_all_batches(name: str) -> None:
    arguments, kind, weight = ONE_OF_EACH[name]
    parts, whole = [], getattr(torcheval.metrics, name)(**arguments)
    for _ in range(2):
        batch, options = batch_of(kind, weight)
        whole.update(*batch, **options)
        parts.append(getattr(torcheval.metrics, name)(**arguments).update(*batch, **options))
    merged = parts[0].merge_state(parts[1:])
    if "max_num_samples" not in arguments:  # which merging adds
        assert_same(merged.compute(), whole.compute())
    assert merged.reset() is merged
    assert not merged._has_data()


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_batch_may_be_given_by_the_names_of_arguments(name: str) -> None:
    arguments, kind, weight = ONE_OF_EACH[name]
    batch, options = batch_of(kind, weight)
    named = dict(zip(("input", "target"), batch, strict=False))
    positional, by_name = (getattr(torcheval.metrics, name)(**arguments) for _ in range(2))
    assert_same(by_name.update(**named, **options).compute(), positional.update(*batch, **options).compute())


def _synced(rank: int, size: int) -> list[Any]:
    metrics = {
        "accuracy": torcheval.metrics.BinaryAccuracy(),
        "auroc": torcheval.metrics.MulticlassAUROC(num_classes=3, average=None),
    }
    if not rank:
        metrics["accuracy"].update(torch.tensor([0.2, 0.9, 0.8]), torch.tensor([0, 1, 0]))
    generator = torch.Generator().manual_seed(rank)
    rows = torch.rand(5 + rank, 3, generator=generator), torch.randint(3, (5 + rank,), generator=generator)
    metrics["auroc"].update(*rows)
    found = toolkit.sync_and_compute_collection(metrics)
    return [float(found["accuracy"]), found["auroc"].tolist()]


@pytest.mark.slow
def test_processes_are_summed_by_the_toolkit_of_torcheval(tmp_path: Path) -> None:
    first, second = processes(_synced, 2, tmp_path)
    assert first == second
    assert first[0] == pytest.approx(2 / 3)


def test_what_is_invalid_raises_in_compute_and_shapes_in_update() -> None:
    metric = torcheval.metrics.MulticlassAccuracy(num_classes=3, average="macro")
    with pytest.raises(InvalidValuesError, match="1"):
        metric.update(torch.tensor([0, 1]), torch.tensor([0, 3])).compute()
    with pytest.raises(InvalidValuesError):
        torcheval.metrics.BinaryAccuracy().update(torch.tensor([torch.nan]), torch.tensor([1])).compute()
    with pytest.raises(ValueError, match="same dimensions"):
        torcheval.metrics.BinaryAccuracy().update(torch.rand(3), torch.ones(2))
    with pytest.raises(ValueError, match="too short"):
        torcheval.metrics.BLEUScore(n_gram=4).update(["a b"], [["a b"]])
    with pytest.raises(RuntimeError, match="num_correct"):
        metric.load_state_dict(original.MulticlassAccuracy(num_classes=3, average="macro").state_dict())
    with pytest.raises(StateError, match="size"):
        torcheval.metrics.MeanSquaredError().update(torch.rand(2, 3), torch.rand(2, 3)).update(rand(2), rand(2))


_CLASSES = {"num_classes": 3, "average": "macro"}
_TOO_LARGE = torch.tensor([1, 3]), torch.tensor([1, 2])


@pytest.mark.parametrize(
    ("name", "options", "batch"),
    [
        *[(f"Binary{name}", {}, (rand(4, 2), rand(3))) for name in ("Accuracy", "F1Score", "Precision", "Recall")],
        *[(f"Binary{name}", {}, (rand(4), rand(3))) for name in ("Accuracy", "ConfusionMatrix", "F1Score")],
        *[(f"Multiclass{name}", _CLASSES, (rand(4), rand(3))) for name in ("Accuracy", "F1Score", "Precision")],
        ("MulticlassRecall", _CLASSES, (rand(3, 2), rand(3, 4))),
        ("MulticlassAccuracy", {"num_classes": 3, "k": 2}, (rand(4), rand(4))),
        ("MulticlassConfusionMatrix", {"num_classes": 3}, _TOO_LARGE),
        ("MulticlassConfusionMatrix", {"num_classes": 3}, _TOO_LARGE[::-1]),
        ("MulticlassConfusionMatrix", {"num_classes": 3}, (rand(3, 2), rand(3))),
        ("BinaryNormalizedEntropy", {}, (torch.tensor([0.5, 1.5]), torch.tensor([0, 1]))),
        ("BinaryNormalizedEntropy", {}, (rand(5), rand(3))),
        *[(f"WordInformation{name}", {}, (["a", "b"], ["a"])) for name in ("Lost", "Preserved")],
        ("WordErrorRate", {}, ("a", ["a"])),
        ("WindowedMeanSquaredError", {}, (rand(3, 2, 2), rand(3, 2, 2))),
        ("WindowedMeanSquaredError", {}, (rand(3, 2), rand(3, 2))),
        ("Perplexity", {}, (rand(1, 3, 4), torch.tensor([[0, 4, 1]]))),
        ("Perplexity", {"ignore_index": 9}, (rand(1, 3, 4), torch.tensor([[9, 4, 1]]))),
        ("Perplexity", {}, (rand(1, 3, 4), torch.tensor([[0, 4]]))),
        *[(name, {}, (torch.ones(3), {"weight": torch.ones(1)})) for name in ("Mean", "Sum")],
    ],
)
def test_errors_of_batches_are_those_of_torcheval(name: str, options: dict[str, Any], batch: tuple[Any, ...]) -> None:
    more = batch[-1] if isinstance(batch[-1], dict) else {}
    data = batch[: len(batch) - len(more)]
    with pytest.raises((AssertionError, ValueError), match=r".") as there:
        getattr(original, name)(**options).update(*data, **more)
    own = getattr(torcheval.metrics, name)(**options)
    with pytest.raises(there.type, match=re.escape(str(there.value))):
        own.update(*data, **more)
    assert not own._has_data()


def test_what_may_wait_is_refused_in_compute_on_a_device() -> None:
    matrix = torcheval.metrics.MulticlassConfusionMatrix(num_classes=3)
    entropy = torcheval.metrics.BinaryNormalizedEntropy()
    with pretend("mps"):
        matrix.update(*(each.to("mps") for each in _TOO_LARGE))
        entropy.update(torch.tensor([0.5, 1.5]).to("mps"), torch.tensor([0, 1]).to("mps"))
        for metric in (matrix, entropy):
            with pytest.raises(InvalidValuesError, match="1"):
                metric.compute()


def test_the_one_state_is_the_counts() -> None:
    metric = torcheval.metrics.MulticlassAUROC(num_classes=3)
    assert list(metric._state_name_to_default) == ["counts"]
    empty = metric.counts
    metric.update(rand(5, 3), torch.arange(5) % 3)
    assert torch.equal(metric.counts, metric.state_dict()["counts"])
    assert not torch.equal(metric.counts, empty)
    assert torch.equal(metric.reset().counts, empty)
    assert metric.to("meta").device.type == "meta"


def test_counts_are_exact_where_those_of_torcheval_stop() -> None:
    metric = torcheval.metrics.BinaryPrecision().update(torch.ones(1), torch.ones(1))
    for _ in range(24):
        metric.merge_state([deepcopy(metric)])
    metric.update(torch.ones(3), torch.tensor([0, 0, 1]))
    assert int(metric.num_tp) == (1 << 24) + 1
    assert int(metric.num_fp) == 2
    with pytest.raises(AttributeError):
        _ = torcheval.metrics.BinaryPrecision().num_tp


def test_binned_areas_of_classes_are_those_of_each_class_against_the_others() -> None:
    """TorchEval's function sums over the classes in the place of the samples."""
    scores, target = rand(ROWS, 3), torch.arange(ROWS) % 3
    areas, _ = torcheval.metrics.functional.multiclass_binned_auroc(
        scores, target, num_classes=3, threshold=7, average=None
    )
    for k in range(3):
        there, _ = functional.binary_binned_auroc(scores[:, k], (target == k).long(), threshold=7)
        assert float(areas[k]) == pytest.approx(float(there), rel=1e-6)


def test_right_words_are_those_of_an_alignment() -> None:
    texts = ["a b c"], ["b c d"]  # an insertion and a deletion, and two right words of three
    lost, preserved = (getattr(torcheval.metrics, f"WordInformation{name}") for name in ("Lost", "Preserved"))
    assert float(preserved().update(*texts).compute()) == pytest.approx(4 / 9)
    assert float(lost().update(*texts).compute()) == pytest.approx(5 / 9)
    assert torcheval.metrics.functional.word_information_lost("a b", "a b").dtype == torch.float64


def test_recall_of_classes_of_which_one_is_absent_has_a_value() -> None:
    metric = torcheval.metrics.MulticlassRecall(num_classes=3, average="macro")
    assert float(metric.update(torch.tensor([0, 1]), torch.tensor([0, 1])).compute()) == 1


def test_names_signatures_and_what_stays_torchevals_own() -> None:
    assert torcheval.metrics.Throughput is original.Throughput
    assert torcheval.metrics.functional.hit_rate is functional.hit_rate
    own = {name for name in original.__all__ if getattr(torcheval.metrics, name) is getattr(original, name)}
    assert own == {"AUC", "Cat", "FrechetAudioDistance", "FrechetInceptionDistance", "HitRate", "Metric"} | {
        "ReciprocalRank",
        "RetrievalPrecision",
        "Throughput",
        "functional",
    } - {"functional"}
    signature = inspect.signature(torcheval.metrics.MulticlassAccuracy)
    assert list(signature.parameters) == ["average", "num_classes", "k", "device"]
    assert torcheval.metrics.Mean().compute().item() == 0.0
    assert str(torcheval.metrics.Max()) == "Max(device=None)"


FUNCTIONS = {name.replace("_", "").lower(): name for name in functional.__all__}


@pytest.mark.parametrize(
    ("name", "arguments", "kind", "weight"),
    [case for case in CASES if case[0].lower() in FUNCTIONS],
    ids=[each for each, case in zip(IDS, CASES, strict=True) if case[0].lower() in FUNCTIONS],
)
def test_a_function_gives_the_value_of_torcheval(name: str, arguments: dict[str, Any], kind: str, weight: str) -> None:
    batch, options = batch_of(kind, weight)
    function = FUNCTIONS[name.lower()]
    own = getattr(torcheval.metrics.functional, function)(*batch, **options, **arguments)
    assert_same(own, getattr(functional, function)(*batch, **options, **arguments))


@pytest.mark.parametrize("name", ["MeanSquaredError", "WindowedMeanSquaredError"])
@pytest.mark.parametrize("weights", [[2.0, -0.5, 1.0, 0.0], [-1.0, -2.0, -0.5, -4.0], [1.0, -1.0, 2.0, -2.0]])
def test_errors_may_have_weights_below_0_as_in_torcheval(name: str, weights: list[float]) -> None:
    there, here = getattr(original, name)(), getattr(torcheval.metrics, name)()
    for k in range(2):
        batch = rand(4), rand(4)
        sample_weight = torch.tensor(weights[k:] + weights[:k])
        for metric in (there, here):
            metric.update(*batch, sample_weight=sample_weight)
    torch.testing.assert_close(here.compute(), there.compute())
    own, other = (function(*batch, sample_weight=sample_weight) for function in (SQUARED_ERROR, OTHERS_ERROR))
    torch.testing.assert_close(own, other)
    with pytest.raises(InvalidValuesError, match="weight"):
        SQUARED_ERROR(*batch, sample_weight=sample_weight * torch.nan)
