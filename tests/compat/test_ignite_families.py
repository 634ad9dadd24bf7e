"""Metrics under Ignite's names whose data is in another layout than assay's: values and errors are Ignite's."""

from __future__ import annotations

import copy
import re
import sys
import types
from typing import Any

import ignite.metrics as original
import pytest
import torch
from assay.compat.ignite.engine import Engine
from ignite.exceptions import NotComputableError

from assay.compat import ignite
from assay.compat.drop_ins import IGNITE_ON_COUNTS, drop_ins
from assay.errors import AssayWarning, InputError, InvalidValuesError
from assay.pretend import pretend
from ranks import processes

GENERATOR = torch.Generator().manual_seed(31)
PLACES = ("", "regression", "nlp", "clustering", "fairness", "rec_sys", "gan", "vision")


def rand(*shape: int) -> torch.Tensor:
    return torch.rand(*shape, generator=GENERATOR)


def randn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=GENERATOR)


def labels(high: int, *shape: int) -> torch.Tensor:
    return torch.randint(high, shape, generator=GENERATOR)


def points() -> tuple[torch.Tensor, torch.Tensor]:
    group = labels(3, 12)
    return randn(12, 2) + 4 * group[:, None], group


WORDS = ("a", "b", "c", "d")


def sentence(size: int) -> list[str]:
    return [WORDS[k] for k in labels(4, size)]


def boxes(count: int, scored: bool) -> dict[str, torch.Tensor]:
    corner = labels(3, count, 2) * 30.0
    found = {"bbox": torch.cat([corner, corner + 20 + labels(3, count, 2) * 30.0], 1), "labels": labels(2, count)}
    return found | ({"scores": torch.randperm(100, generator=GENERATOR)[:count] / 100} if scored else {})


KINDS: dict[str, Any] = {
    "binary": lambda: (labels(2, 9), labels(2, 9)),
    "classes": lambda: (labels(4, 9), labels(4, 9)),
    "columns": lambda: (labels(4, 9, 1), labels(4, 9, 1)),
    "scores": lambda: (randn(9, 4), labels(4, 9)),
    "two scores": lambda: (randn(9, 4), randn(9, 4)),
    "positions": lambda: (randn(5, 4, 2, 3), labels(4, 5, 2, 3)),
    "two positions": lambda: (randn(5, 4, 2, 3), randn(5, 4, 2, 3)),
    "label scores": lambda: (rand(9, 3), labels(2, 9, 3)),
    "labels": lambda: (labels(2, 9, 3), labels(2, 9, 3)),
    "pixels": lambda: (labels(2, 4, 3, 2, 2), labels(2, 4, 3, 2, 2)),
    "score": lambda: (rand(9), labels(2, 9)),
    "coarse score": lambda: (labels(4, 9) / 4, labels(2, 9)),
    "numbers": lambda: (rand(9) + 0.1, rand(9) + 0.1),
    "column": lambda: (rand(9, 1) + 0.1, rand(9, 1) + 0.1),
    "rows": lambda: (randn(9, 5), randn(9, 5)),
    "images": lambda: (rand(3, 2, 16, 18), rand(3, 2, 16, 18)),
    "bytes": lambda: (labels(256, 3, 2, 16, 18).byte(), labels(256, 3, 2, 16, 18).byte()),
    "volumes": lambda: (rand(2, 1, 8, 7, 9), rand(2, 1, 8, 7, 9)),
    "items": lambda: (torch.rand(6, 8, generator=GENERATOR), labels(4, 6, 8) * (labels(3, 6, 1) > 0)),
    "points": points,
    "tokens": lambda: ([sentence(6), sentence(9)], [[sentence(7)], [sentence(5), sentence(9)]]),
    "texts": lambda: ([" " + "".join(sentence(6)), "ab"], ["".join(sentence(5)), "b "]),
    "number": lambda: float(rand(1)) + 0.1,
    "vector": lambda: rand(3) + 0.1,
    "matrix": lambda: rand(4, 3) + 0.1,
    "groups": lambda: (randn(9, 4), labels(4, 9), labels(2, 9)),
    "binary groups": lambda: (labels(2, 9), labels(2, 9), labels(2, 9)),
    "probabilities": lambda: randn(6, 4).softmax(1),
    "detections": lambda: ([boxes(5, True), boxes(3, True)], [boxes(4, False), boxes(2, False)]),
}
AVERAGES = ("micro", "macro", "weighted", None)
CASES: list[tuple[str, dict[str, Any], str]] = [
    *(("CohenKappa", {"weights": weights}, kind) for weights in (None, "linear", "quadratic") for kind in ("classes",)),
    ("CohenKappa", {"num_classes": 4, "weights": "linear"}, "classes"),
    *((name, {}, "columns") for name in ("CohenKappa", "MatthewsCorrCoef")),
    *(("MatthewsCorrCoef", {}, kind) for kind in ("binary", "classes", "scores", "two scores")),
    *(("RocCurve", {}, kind) for kind in ("score", "coarse score")),
    *(
        ("MeanAveragePrecision", {"class_mean": mean, "rec_thresholds": levels, **more}, kind)
        for mean in AVERAGES
        for levels in (None, [0.0, 0.3, 0.7, 1.0])
        for kind, more in (("scores", {}), ("label scores", {"is_multilabel": True}), ("positions", {}))
    ),
    ("MeanAveragePrecision", {}, "coarse score"),
    *(
        ("MultiLabelConfusionMatrix", {"num_classes": 3, "normalized": normalized}, kind)
        for normalized in (False, True)
        for kind in ("labels", "pixels")
    ),
    *(("SelectionRate", {}, kind) for kind in ("binary", "scores", "positions")),
    *(("SelectionRate", {"is_multilabel": True}, kind) for kind in ("labels", "pixels")),
    *((name, {}, kind) for name in ("Entropy", "MutualInformation") for kind in ("scores", "positions")),
    *((name, {}, kind) for name in ("KLDivergence", "JSDivergence") for kind in ("two scores", "two positions")),
    *((name, {}, kind) for name in ("Perplexity",) for kind in ("scores", "positions")),
    ("Perplexity", {"ignore_index": 2}, "scores"),
    *((name, {}, "numbers") for name in ("MedianAbsolutePercentageError", "MedianRelativeAbsoluteError")),
    *(
        (name, {}, kind)
        for name in ("ManhattanDistance", "MeanAbsoluteRelativeError", "MedianAbsoluteError")
        for kind in ("numbers", "column")
    ),
    *(("CosineSimilarity", {"eps": eps}, kind) for eps, kind in ((1e-8, "rows"), (3.0, "rows"), (1e-8, "images"))),
    *((name, {}, "rows") for name in ("HSIC", "MaximumMeanDiscrepancy")),
    ("HSIC", {"sigma_x": 1.5, "sigma_y": 2.0}, "rows"),
    ("MaximumMeanDiscrepancy", {"var": 3.0}, "images"),
    *(("PSNR", {"data_range": high}, kind) for high, kind in ((1.0, "images"), (255, "bytes"), (1.0, "rows"))),
    *(
        ("SSIM", {"data_range": high, **more}, kind)
        for high, kind in ((1.0, "images"), (255, "bytes"))
        for more in ({}, {"gaussian": False}, {"kernel_size": (5, 7), "sigma": (1.0, 2.0)})
    ),
    ("SSIM", {"data_range": 1.0, "ndims": 3, "kernel_size": 5, "sigma": 0.8}, "volumes"),
    *(
        (name, {"top_k": [1, 3, 8], "ignore_zero_hits": skips}, "items")
        for name in ("HitRate", "NDCG")
        for skips in (True, False)
    ),
    ("HitRate", {"top_k": 2}, "items"),
    ("NDCG", {"top_k": [2, 4], "gain_function": "linear_rank", "relevance_threshold": 2.0}, "items"),
    *((name, {}, "points") for name in ("CalinskiHarabaszScore", "DaviesBouldinScore", "SilhouetteScore")),
    *(
        ("Bleu", {"average": average, "smooth": smooth, "ngram": 3}, "tokens")
        for average in ("macro", "micro")
        for smooth in ("no_smooth", "smooth1", "nltk_smooth2", "smooth2")
    ),
    *((name, {"multiref": several}, "tokens") for name in ("Rouge", "RougeL") for several in ("best", "average")),
    ("RougeN", {"ngram": 2, "alpha": 0.5}, "tokens"),
    ("Rouge", {"variants": ["L", 2]}, "tokens"),
    ("CharacterErrorRate", {}, "texts"),
    *((name, {}, kind) for name in ("Average", "GeometricAverage") for kind in ("number", "vector", "matrix")),
    ("Loss", {"loss_fn": torch.nn.functional.cross_entropy}, "scores"),
    *(("Fbeta", {"beta": beta, "average": average}, "scores") for beta, average in ((1, True), (2, False))),
    ("ClassificationReport", {"output_dict": True}, "scores"),
    ("ClassificationReport", {"is_multilabel": True, "labels": ["a", "b", "c"]}, "labels"),
    *(
        (name, {"groups": [0, 1]}, kind)
        for name in ("SubgroupAccuracyDifference", "DemographicParityDifference")
        for kind in ("groups", "binary groups")
    ),
    ("InceptionScore", {"num_features": 4, "feature_extractor": torch.nn.Identity()}, "probabilities"),
    ("ObjectDetectionAvgPrecisionRecall", {"num_classes": 2}, "detections"),
    ("ObjectDetectionAvgPrecisionRecall", {"num_classes": 2, "area_range": "medium"}, "detections"),
    (
        "ObjectDetectionAvgPrecisionRecall",
        {"num_classes": 2, "iou_thresholds": [0.5, 0.75], "max_detections_per_image_per_class": 2},
        "detections",
    ),
    ("CommonObjectDetectionMetrics", {"num_classes": 2}, "detections"),
]


def found(home: Any, name: str) -> Any:
    """A name of `ignite.metrics`, or of a package in it."""
    places = [getattr(home, place) if place else home for place in PLACES]
    if name == "CommonObjectDetectionMetrics":
        return places[-1].object_detection_average_precision_recall.CommonObjectDetectionMetrics
    return next(getattr(place, name) for place in places if hasattr(place, name))


def values(metric: Any, batches: list[Any]) -> Any:
    """What an engine that runs these batches gives."""
    engine = Engine(lambda engine, batch: batch)
    metric._skip_unrolling = True
    metric.attach(engine, "value")
    return engine.run(batches).metrics


@pytest.fixture
def torchvision(monkeypatch):
    """What Ignite needs of it."""

    def area(boxes):
        return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])

    def common(a, b):
        sides = torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])
        inside = sides.clamp(min=0).prod(2)
        return inside, area(a)[:, None] + area(b) - inside

    module = types.ModuleType("torchvision.ops.boxes")
    vars(module).update(box_area=area, _box_inter_union=common)
    for name in ("torchvision", "torchvision.ops"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torchvision.ops.boxes", module)


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence for multidimensional indexing:UserWarning")
@pytest.mark.parametrize(("name", "given", "kind"), CASES, ids=lambda each: str(each).replace("'", "")[:40])
def test_values_are_those_of_ignite(name, given, kind, torchvision):
    batches = [KINDS[kind]() for _ in range(3)]
    ours, expected = (values(found(home, name)(**given), batches) for home in (ignite.metrics, original))
    same_floats = isinstance(ours["value"], float) and isinstance(expected["value"], float)
    assert type(ours["value"]) is type(expected["value"]) or same_floats
    if name == "ClassificationReport" and not given.get("output_dict"):
        assert ours == expected
        return
    close = {"rtol": 1e-5, "atol": 1e-5 if name == "SSIM" else 1e-6}
    if name in ("ObjectDetectionAvgPrecisionRecall", "CommonObjectDetectionMetrics"):
        close = {"rtol": 0, "atol": 0.005}  # Ignite rounds thresholds to float32
    torch.testing.assert_close(ours, expected, check_dtype=False, **close)


def test_only_general_tools_and_one_network_are_ignites_own():
    own = {name for name, each in drop_ins("ignite").items() if not each.assay}
    assert len(own) <= 22
    counted = {name for name, each in drop_ins("ignite").items() if each.assay}
    for name in counted - set(IGNITE_ON_COUNTS):
        assert found(ignite.metrics, name).__module__ == "assay.compat.ignite.metrics", name


@pytest.mark.parametrize("name", ["IoU", "mIoU", "JaccardIndex", "DiceCoefficient", "cmAccuracy", "cmRecall"])
def test_functions_of_a_confusion_matrix_read_assays_counts(name):
    batch = KINDS["scores"]()
    homes = ignite.metrics, original
    ours, expected = (getattr(home.confusion_matrix, name)(home.ConfusionMatrix(num_classes=4)) for home in homes)
    for metric in (ours, expected):
        metric.update(batch)
    torch.testing.assert_close(ours.compute(), expected.compute())


def test_groups_are_counted_by_copies_of_a_metric():
    metric = ignite.metrics.fairness.base.SubgroupMetric(ignite.metrics.Accuracy(), [0, 1])
    expected = original.fairness.base.SubgroupMetric(original.Accuracy(), [0, 1])
    batch = KINDS["groups"]()
    for each in (metric, expected):
        each.update(batch)
    assert metric.compute() == pytest.approx(expected.compute())


def test_arithmetic_and_indexing_are_those_of_ignite():
    def of(home):
        rate, loss = found(home, "SelectionRate")(), home.Loss(torch.nn.functional.cross_entropy)
        return rate[1] * 2 + loss

    metric, expected = of(ignite.metrics), of(original)
    for batch in (KINDS["scores"](), KINDS["scores"]()):
        metric.update(batch)
        expected.update(batch)
    assert float(metric.compute()) == pytest.approx(float(expected.compute()), rel=1e-5)


REFUSED: list[tuple[str, dict[str, Any], Any]] = [
    ("Entropy", {}, (rand(3), rand(3))),
    ("KLDivergence", {}, (rand(3, 2), rand(3, 4))),
    ("JSDivergence", {}, (rand(3), rand(3))),
    ("Perplexity", {}, (rand(3, 4), labels(4, 2))),
    ("PSNR", {"data_range": 1.0}, (rand(3, 2), rand(3, 2).double())),
    ("SSIM", {"data_range": 1.0}, (rand(3, 2), rand(3, 2))),
    ("HitRate", {}, (rand(3, 2), rand(3, 3))),
    ("NDCG", {"top_k": [1]}, (rand(3, 2),)),
    ("MultiLabelConfusionMatrix", {"num_classes": 3}, (rand(3, 3), labels(2, 3, 3))),
    ("MultiLabelConfusionMatrix", {"num_classes": 3}, (labels(2, 3, 4), labels(2, 3, 4))),
    ("SilhouetteScore", {}, (rand(3), labels(2, 3))),
    ("CharacterErrorRate", {}, (["a"], 1)),
    ("CharacterErrorRate", {}, (["a"], ["a", "b"])),
    ("CohenKappa", {"num_classes": 2}, (labels(2, 3, 2), labels(2, 3, 2))),
    ("HSIC", {"ignore_invalid_batch": False}, (rand(3, 2), rand(3, 2))),
    ("Average", {}, "text"),
    ("Loss", {"loss_fn": torch.sub}, (rand(3), rand(3))),
    ("ManhattanDistance", {}, (labels(2, 3), labels(2, 3))),
    ("ObjectDetectionAvgPrecisionRecall", {}, ([], [])),
]


@pytest.mark.parametrize(("name", "given", "output"), REFUSED, ids=[f"{each[0]}-{k}" for k, each in enumerate(REFUSED)])
def test_what_ignite_refuses_is_refused(name, given, output, torchvision):
    metric, expected = (found(home, name)(**given) for home in (ignite.metrics, original))
    with pytest.raises((TypeError, ValueError)) as theirs:
        expected.update(output)
    with pytest.raises(type(theirs.value)) as ours:
        metric.update(output)
    assert str(theirs.value) in str(ours.value)


def test_a_constructor_refuses_what_ignites_does():
    for name, given, text in (
        ("Bleu", {"average": "no"}, "Average"),
        ("RougeN", {"ngram": 0}, "ngram"),
        ("SSIM", {"data_range": 1, "ndims": 4}, "ndims"),
    ):
        with pytest.raises(ValueError, match=text):
            found(ignite.metrics, name)(**given)
    with pytest.raises(ValueError, match="class_mean"):
        ignite.metrics.MeanAveragePrecision(class_mean="median")
    with pytest.raises(ValueError, match="between 0 and 1"):
        found(ignite.metrics, "ObjectDetectionAvgPrecisionRecall")(rec_thresholds=[2.0])


@pytest.mark.parametrize(
    "name", ["CohenKappa", "Average", "Loss", "Entropy", "HSIC", "RougeL", "SSIM", "MutualInformation"]
)
def test_without_samples_there_is_no_value(name):
    given = {"Loss": {"loss_fn": torch.sub}, "SSIM": {"data_range": 1.0}}.get(name, {})
    with pytest.raises(NotComputableError, match="must have at least one"):
        found(ignite.metrics, name)(**given).compute()


def test_batches_without_anything_that_counts_give_no_value():
    hits = ignite.metrics.HitRate()
    hits.update((rand(3, 2), torch.zeros(3, 2)))
    dependence = ignite.metrics.HSIC()
    dependence.update((rand(3, 2), rand(3, 2)))  # less than Ignite asks of a batch
    tokens = found(ignite.metrics, "Perplexity")(ignore_index=0)
    tokens.update((rand(3, 4), torch.zeros(3, dtype=torch.int64)))
    for metric in (hits, dependence, tokens):
        with pytest.raises(NotComputableError, match="must have at least one"):
            metric.compute()


@pytest.mark.parametrize(
    ("name", "options", "batch", "error"),
    [
        ("MeanAbsoluteRelativeError", {}, (torch.ones(2), torch.tensor([0.0, 1.0])), NotComputableError),
        ("MeanAveragePrecision", {}, (torch.ones(3, 2), torch.tensor([0, 1, 2])), InvalidValuesError),
        ("MeanNormalizedBias", {}, (torch.ones(2), torch.tensor([0.0, 1.0])), None),
        ("Precision", {}, (torch.eye(3), torch.tensor([0, 3, 2])), InvalidValuesError),
        ("Recall", {}, (torch.eye(3), torch.tensor([0, 3, 2])), InvalidValuesError),
        ("Recall", {"is_multilabel": True}, (torch.eye(3), torch.tensor([[0, 2, 0]] * 3)), InvalidValuesError),
        ("SelectionRate", {}, (torch.tensor([0, 2]), torch.tensor([0, 1])), InvalidValuesError),
    ],
)
def test_what_ignite_refuses_is_refused_at_once_where_nothing_must_be_waited_for(name, options, batch, error):
    made = lambda kinds: found(kinds, name)(**options)  # noqa: E731
    with pytest.raises((NotComputableError, ValueError)) as there:
        made(original).update(batch)
    with pytest.raises(there.type, match=re.escape(str(there.value))):
        made(ignite.metrics).update(batch)
    if error is not None:
        metric = made(ignite.metrics)
        with pretend("mps"):
            metric.update(tuple(each.to("mps") for each in batch))
            with pytest.raises(error):
                metric.compute()


def test_invalid_values_raise_when_the_value_is_computed():
    for metric, batch in (
        (ignite.metrics.CohenKappa(num_classes=2), (torch.tensor([0, 5]), torch.tensor([0, 1]))),
        (ignite.metrics.MultiLabelConfusionMatrix(num_classes=2), (torch.tensor([[0, 3]]), torch.tensor([[0, 1]]))),
    ):
        metric.update(batch)
        with pytest.raises(InvalidValuesError):
            metric.compute()


@pytest.mark.parametrize(
    "name", ["CohenKappa", "Average", "Loss", "MeanAveragePrecision", "Rouge", "CommonObjectDetectionMetrics"]
)
def test_states_are_copied_saved_and_loaded(name):
    given = {"Loss": {"loss_fn": torch.nn.functional.cross_entropy}}.get(name, {})
    kind = {"CohenKappa": "classes", "Average": "matrix", "Rouge": "tokens"}.get(name, "scores")
    metric = found(ignite.metrics, name)(**given)
    metric.update(KINDS["detections" if name.startswith("Common") else kind]())
    expected, state, copied = metric.compute(), metric.state_dict(), copy.deepcopy(metric)
    metric.reset()
    metric.load_state_dict(state)
    assert str(metric.compute()) == str(copied.compute()) == str(expected)


def test_options_of_silhouettes_give_the_metric_of_ignite_with_a_warning():
    with pytest.warns(AssayWarning, match="silhouette_kwargs"):
        metric = found(ignite.metrics, "SilhouetteScore")(silhouette_kwargs={"metric": "cosine"})
    assert type(metric) is found(original, "SilhouetteScore")


def test_an_average_is_rounded_once_and_keeps_its_shape():
    metric = ignite.metrics.Average()
    for number in (1e16, 1.0, -1e16):
        metric.update(number)
    assert metric.compute() == torch.tensor(1 / 3, dtype=torch.float64)
    metric.reset()
    metric.update(torch.ones(4, 2, 3))
    assert metric.compute().shape == (2, 3)


def of_a_rank(rank, size):
    """No batch of some metrics on the first process."""
    values = []
    for name, kind in (
        ("CohenKappa", "classes"),
        ("MutualInformation", "scores"),
        ("Average", "vector"),
        ("RougeL", "tokens"),
    ):
        metric = found(ignite.metrics, name)()
        batch = KINDS[kind]()
        if rank or name == "CohenKappa":
            metric.update(batch)
        values.append(str(metric.compute()))
    return values


def test_processes_have_the_same_value(tmp_path):
    first, second = processes(of_a_rank, 2, tmp_path)
    assert first == second


def test_one_error_has_the_class_of_both_libraries():
    with pytest.raises(InputError) as raised:
        ignite.metrics.KLDivergence().update((rand(3, 2), rand(3, 4)))
    assert isinstance(raised.value, ValueError)
