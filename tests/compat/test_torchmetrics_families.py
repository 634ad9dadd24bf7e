"""Images, masks and signals: classes and functions under TorchMetrics' names give its values, shapes and dtypes."""

from __future__ import annotations

import pickle
from importlib import import_module
from types import SimpleNamespace

import pytest
import torch
import torchmetrics as library
import torchmetrics.functional.audio as audio

from assay import Meter, metrics
from assay.compat import torchmetrics
from assay.compat.drop_ins import FAMILIES, drop_ins
from assay.compat.for_torchmetrics.boxes import OF_BOXES, PairsAndMisses
from assay.compat.for_torchmetrics.families import CompatibleFamily
from assay.compat.for_torchmetrics.names import families
from assay.errors import AssayWarning, InvalidValuesError
from assay.integrations.torchmetrics import AssayMetric
from assay.metrics import IntersectionOverUnion, RelativeAverageSpectralError, RootMeanSquaredErrorUsingSlidingWindow
from assay.pretend import pretend

pytestmark = pytest.mark.filterwarnings(
    "ignore:Metric `:UserWarning",  # of buffers
    "ignore:The `reduction=sum:UserWarning",
    "ignore:dice_score metric:UserWarning",
    "ignore:DiceScore metric:UserWarning",
)

IMAGES = (3, 2, 24, 22)
MASKS = (5, 9, 9)
TWICE = {"kernel_size": 5, "sigma": 0.5}


def images(generator, shape=IMAGES, alone=False):
    target = torch.rand(shape, generator=generator)
    preds = (target + 0.2 * torch.randn(shape, generator=generator)).clamp(0.01, 1)
    return (preds,) if alone else (preds, target)


def large(generator):
    return images(generator, (2, 2, 44, 42))


def volumes(generator):
    return images(generator, (2, 1, 12, 13, 14))


def alone(generator):
    return images(generator, alone=True)


def channels(generator):
    return images(generator, (2, 4, 14, 15))


def gray(generator):
    return images(generator, (3, 1, 24, 22))


def indices(generator):
    return tuple(torch.randint(4, MASKS, generator=generator) for _ in range(2))


def one_hot(generator):
    return tuple(torch.randint(2, (5, 4, 9, 9), generator=generator) for _ in range(2))


def mixed(generator):
    return indices(generator)[0], one_hot(generator)[1]


def logits(generator):
    return torch.randn(5, 4, 9, 9, generator=generator), one_hot(generator)[1]


def signals(*shape):
    def made(generator):
        target = torch.randn(shape, generator=generator)
        return target + 0.3 * torch.randn(shape, generator=generator), target

    return made


def points(generator):
    return torch.randn(30, 4, generator=generator), 3 * torch.randint(4, (30,), generator=generator)


def ratings(generator):
    scores = torch.randint(3, (12, 5), generator=generator)
    return (torch.nn.functional.one_hot(scores, 3).sum(1),)


def votes(generator):
    return (torch.randn(12, 4, 4, generator=generator),)


def faces(generator):
    return torch.randn(5, 6, 3, generator=generator), torch.randn(7, 6, 3, generator=generator)


def clouds(generator):
    return tuple(torch.randn(5, 6, 3, generator=generator) for _ in range(2))


def grouped(generator):
    labels = (torch.randint(high, (40,), generator=generator) for high in (2, 3))
    return (torch.rand(40, generator=generator), *labels)


def scored(generator):
    return torch.rand(30, generator=generator), torch.randint(2, (30,), generator=generator)


def segments(generator):
    ids = [torch.randint(high, (2, 8, 8), generator=generator) for high in (4, 3, 5, 3)]
    return torch.stack(ids[:2], -1), torch.stack(ids[2:], -1)


WORDS = ["the", "cat", "sat", "on", "a", "mat", "while", "dogs", "ran", "home.", "it", "was", "late"]


def texts(generator, count=4):
    drawn = torch.randint(len(WORDS), (count, 9), generator=generator).tolist()
    return [" ".join(WORDS[k] for k in each) for each in drawn]


def summaries(generator):
    return texts(generator), [list(each) for each in zip(texts(generator), texts(generator), strict=True)]


def answers(generator):
    found, right = texts(generator), texts(generator)
    preds = [{"prediction_text": text[:20], "id": str(k)} for k, text in enumerate(found)]
    target = [
        {"answers": {"answer_start": [1], "text": [text[:12], found[k][:20]][: 1 + k % 2]}, "id": str(k)}
        for k, text in enumerate(right)
    ]
    return preds, target[::-1]


FORMATS = {"index": indices, "one-hot": one_hot, "mixed": mixed}
DICE = [{"average": a, "aggregation_level": b} for a in ("macro", "weighted", "none") for b in ("samplewise", "global")]

CATEGORIES = {"things": {0, 2}, "stuffs": {1, 3}}
CASES = [
    ("image", "PeakSignalNoiseRatio", {"data_range": 1.0}, images),
    ("image", "PeakSignalNoiseRatio", {"data_range": (0.2, 0.8), "base": 2.0}, images),
    ("image", "PeakSignalNoiseRatio", {"data_range": 1.0, "dim": (1, 2, 3)}, images),
    ("image", "PeakSignalNoiseRatio", {"data_range": 1.0, "dim": (1, 2, 3), "reduction": "sum"}, images),
    ("image", "StructuralSimilarityIndexMeasure", {}, images),
    ("image", "StructuralSimilarityIndexMeasure", {"data_range": 1.0, "reduction": "sum"}, images),
    ("image", "StructuralSimilarityIndexMeasure", {"data_range": 1.0}, volumes),
    (
        "image",
        "StructuralSimilarityIndexMeasure",
        {"data_range": (0.0, 0.7), "gaussian_kernel": False, "kernel_size": 7},
        images,
    ),
    (
        "image",
        "MultiScaleStructuralSimilarityIndexMeasure",
        {"data_range": 1.0, "betas": (0.3, 0.7), **TWICE},
        images,
    ),
    ("image", "UniversalImageQualityIndex", {}, images),
    ("image", "UniversalImageQualityIndex", {"reduction": "sum", "kernel_size": (7, 7)}, images),
    ("image", "SpectralAngleMapper", {}, images),
    ("image", "SpectralAngleMapper", {"reduction": "sum"}, images),
    ("image", "ErrorRelativeGlobalDimensionlessSynthesis", {"ratio": 2}, images),
    ("image", "SpatialCorrelationCoefficient", {}, images),
    ("image", "SpatialCorrelationCoefficient", {"window_size": 5}, images),
    ("image", "TotalVariation", {}, alone),
    ("image", "TotalVariation", {"reduction": "mean"}, alone),
    ("image", "VisualInformationFidelity", {}, large),
    ("image", "SpectralDistortionIndex", {}, images),
    ("image", "SpectralDistortionIndex", {"p": 3, "reduction": "sum"}, channels),
    ("image", "SpectralDistortionIndex", {}, gray),
    ("image", "PeakSignalNoiseRatioWithBlockedEffect", {"data_range": 1.0, "block_size": 4}, gray),
    ("image", "PeakSignalNoiseRatioWithBlockedEffect", {"data_range": (0.2, 0.9)}, gray),
    *[
        ("segmentation", "DiceScore", {**options, "input_format": name, "include_background": name != "mixed"}, draw)
        for options in DICE
        for name, draw in FORMATS.items()
    ],
    ("segmentation", "DiceScore", {"average": "micro"}, logits),
    ("segmentation", "DiceScore", {"average": "micro", "aggregation_level": "global"}, one_hot),
    *[
        ("segmentation", kind, {"per_class": per_class, "input_format": name, "include_background": per_class}, draw)
        for kind in ("GeneralizedDiceScore", "MeanIoU")
        for per_class in (True, False)
        for name, draw in FORMATS.items()
    ],
    ("segmentation", "GeneralizedDiceScore", {"weight_type": "linear"}, one_hot),
    ("segmentation", "GeneralizedDiceScore", {"weight_type": "simple"}, one_hot),
    ("segmentation", "MeanIoU", {"num_classes": None, "per_class": True}, one_hot),
    ("segmentation", "MeanIoU", {"num_classes": None}, logits),
    *[("segmentation", "HausdorffDistance", {"input_format": name}, draw) for name, draw in FORMATS.items()],
    ("segmentation", "HausdorffDistance", {"directed": True, "spacing": [1.0, 2.0]}, one_hot),
    ("audio", "SignalNoiseRatio", {}, signals(2, 3, 50)),
    ("audio", "SignalNoiseRatio", {"zero_mean": True}, signals(50)),
    ("audio", "ScaleInvariantSignalDistortionRatio", {"zero_mean": True}, signals(2, 3, 50)),
    ("audio", "ScaleInvariantSignalNoiseRatio", {}, signals(4, 50)),
    ("audio", "SourceAggregatedSignalDistortionRatio", {}, signals(2, 3, 50)),
    ("audio", "SourceAggregatedSignalDistortionRatio", {"scale_invariant": False}, signals(3, 50)),
    ("audio", "ComplexScaleInvariantSignalNoiseRatio", {}, signals(2, 3, 10, 2)),
    ("audio", "SignalDistortionRatio", {"filter_length": 16}, signals(2, 2, 400)),
    ("audio", "PermutationInvariantTraining", {"metric_func": audio.signal_noise_ratio}, signals(3, 2, 40)),
    (
        "audio",
        "PermutationInvariantTraining",
        {"metric_func": audio.scale_invariant_signal_distortion_ratio, "zero_mean": True, "eval_func": "min"},
        signals(3, 3, 40),
    ),
    (
        "audio",
        "PermutationInvariantTraining",
        {"metric_func": audio.source_aggregated_signal_distortion_ratio, "mode": "permutation-wise"},
        signals(3, 3, 40),
    ),
    ("clustering", "CalinskiHarabaszScore", {}, points),
    ("clustering", "DaviesBouldinScore", {}, points),
    ("clustering", "DunnIndex", {"p": 1}, points),
    ("nominal", "FleissKappa", {}, ratings),
    ("nominal", "FleissKappa", {"mode": "probs"}, votes),
    ("multimodal", "LipVertexError", {"mouth_map": [0, 3, 4]}, faces),
    ("shape", "ProcrustesDisparity", {}, clouds),
    ("classification", "BinaryGroupStatRates", {"num_groups": 3}, grouped),
    ("classification", "BinaryFairness", {"num_groups": 3}, grouped),
    ("classification", "BinaryFairness", {"num_groups": 3, "task": "equal_opportunity"}, grouped),
    ("text", "ROUGEScore", {"rouge_keys": ("rouge1", "rouge2", "rougeL")}, summaries),
    ("text", "ROUGEScore", {"rouge_keys": "rouge1", "use_stemmer": True}, summaries),
    ("text", "SQuAD", {}, answers),
    *[
        ("detection", "PanopticQuality", {**CATEGORIES, "return_per_class": one, "return_sq_and_rq": two}, segments)
        for one in (True, False)
        for two in (True, False)
    ],
    ("detection", "ModifiedPanopticQuality", CATEGORIES, segments),
]
IDS = [f"{name}-{k}" for k, (_, name, _, _) in enumerate(CASES)]


def both(path: str, name: str):
    return getattr(import_module(f"torchmetrics.{path}"), name), getattr(
        import_module(f"assay.compat.torchmetrics.{path}"), name
    )


def options_of(family, options):
    return {"num_classes": 4, **options} if family == "segmentation" else options


def same(found, expected):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        found, expected = list(found.values()), list(expected.values())
    if isinstance(expected, list | tuple):
        for one, two in zip(found, expected, strict=True):
            same(one, two)
        return
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True)


@pytest.mark.parametrize(("family", "name", "options", "draw"), CASES, ids=IDS)
def test_a_class_and_its_function_have_the_values_of_torchmetrics(family, name, options, draw):
    generator = torch.Generator().manual_seed(4)
    options = options_of(family, options)
    original, kind = both(family, name)
    there, here = original(**options), kind(**options)
    assert isinstance(here, CompatibleFamily)
    batches = [draw(generator) for _ in range(2)]
    for batch in batches:
        same(here(*batch), there(*batch))
    same(here.compute(), there.compute())
    parts = [kind(**options) for _ in range(2)]
    for part, batch in zip(parts, batches, strict=True):
        part.update(*batch)
    parts[0].merge_state(parts[1])
    here.persistent(True)
    loaded = kind(**options)
    loaded.load_state_dict(here.state_dict())
    for each in (parts[0], loaded, pickle.loads(pickle.dumps(here))):
        torch.testing.assert_close(each.compute(), here.compute(), rtol=0, atol=0, equal_nan=True)
    here.reset()
    here.update(*batches[0])
    there.reset()
    there.update(*batches[0])
    same(here.compute(), there.compute())
    if FAMILIES[name]:
        function_there, function = both(f"functional.{family}", FAMILIES[name])
        same(function(*batches[0], **options), function_there(*batches[0], **options))


@pytest.mark.parametrize(
    ("family", "name", "options"),
    [
        ("image", "PeakSignalNoiseRatio", {"data_range": 1.0, "dim": 1}),
        ("image", "StructuralSimilarityIndexMeasure", {"reduction": "none"}),
        ("image", "StructuralSimilarityIndexMeasure", {"return_full_image": True}),
        ("image", "MultiScaleStructuralSimilarityIndexMeasure", {}),
        ("image", "TotalVariation", {"reduction": None}),
        ("segmentation", "HausdorffDistance", {"distance_metric": "taxicab"}),
        ("audio", "PermutationInvariantTraining", {"metric_func": lambda preds, target: preds}),
        ("text", "ROUGEScore", {"accumulate": "avg", "rouge_keys": "rouge1"}),
    ],
)
def test_an_argument_without_counterpart_gives_the_metric_of_torchmetrics(family, name, options):
    original, kind = both(family, name)
    with pytest.warns(AssayWarning, match=f"^{name}: TorchMetrics itself computes it"):
        metric = kind(**options_of(family, options))
    assert type(metric) is original


def test_declarations_and_families_name_the_same_metrics():
    declared = drop_ins("torchmetrics")
    assert {name: declared[name].assay for name in FAMILIES} == {name: each.assay for name, each in families().items()}
    assert all(hasattr(metrics, each.assay) for each in families().values())


def test_the_errors_are_those_of_torchmetrics():
    preds = torch.rand(2, 3, 16, 16)
    angle = torchmetrics.image.SpectralAngleMapper()
    with pytest.raises(TypeError, match="same data type"):
        angle.update(preds, preds.double())
    with pytest.raises(ValueError, match="BxCxHxW"):
        angle.update(preds[0], preds[0])
    ratio = torchmetrics.audio.SignalNoiseRatio()
    with pytest.raises(RuntimeError, match="same shape"):
        ratio.update(preds, preds[..., 1:])
    dice = torchmetrics.segmentation.DiceScore(num_classes=2, input_format="index")
    with pytest.raises(RuntimeError, match="same shape"):
        dice.update(torch.zeros(2, 4, dtype=torch.long), torch.zeros(2, 3, dtype=torch.long))


@pytest.mark.parametrize("thresholds", [None, 7])
@pytest.mark.parametrize("task", ["Binary", "Multiclass", "Multilabel"])
def test_the_equal_error_rate_is_that_of_torchmetrics(task, thresholds):
    generator = torch.Generator().manual_seed(1)
    several = torch.randn(40, 3, generator=generator), torch.randint(2, (40, 3), generator=generator)
    batch, size = {
        "Binary": (scored(generator), {}),
        "Multiclass": ((several[0], several[1].sum(1) % 3), {"num_classes": 3}),
        "Multilabel": (several, {"num_labels": 3}),
    }[task]
    options = {**size, "thresholds": thresholds}
    original, kind = both("classification", f"{task}EER")
    there, here = original(**options), kind(**options)
    same(here(*batch), there(*batch))
    same(here.compute(), there.compute())
    assert type(torchmetrics.classification.EER(task=task.lower(), **options)) is kind
    for name, named in ((f"{task.lower()}_eer", {}), ("eer", {"task": task.lower()})):
        function_there, function = both("functional.classification", name)
        same(function(*batch, **named, **options), function_there(*batch, **named, **options))


def test_functions_of_groups_find_out_how_many_there_are():
    preds, target, groups = grouped(torch.Generator().manual_seed(9))
    for name in ("binary_fairness", "equal_opportunity"):
        there, here = both("functional.classification", name)
        same(here(preds, target, groups), there(preds, target, groups))
    there, here = both("functional.classification", "demographic_parity")
    same(here(preds, groups), there(preds, groups))


def test_points_of_one_cluster_are_an_error_as_there():
    for name in ("CalinskiHarabaszScore", "DaviesBouldinScore"):
        metric = getattr(torchmetrics.clustering, name)()
        metric.update(torch.rand(4, 2), torch.zeros(4, dtype=torch.long))
        with pytest.raises(ValueError, match="detected clusters"):
            metric.compute()


def test_an_unanswered_question_counts_as_wrong():
    target = [{"answers": {"answer_start": [1], "text": ["1976"]}, "id": k} for k in "ab"]
    with pytest.warns(UserWarning, match="Unanswered question b"):
        found = torchmetrics.text.SQuAD()([{"prediction_text": "1976", "id": "a"}], target)
    assert found == {"exact_match": 50, "f1": 50}


def boxes(generator, low, high):
    """The boxes of an image, some of which are found."""
    count, found = torch.randint(low, high, (2,), generator=generator).tolist()
    start = 50 * torch.rand(count + 4, 2, generator=generator)
    every = torch.cat([start, start + 5 + 40 * torch.rand(count + 4, 2, generator=generator)], 1)
    labels = [torch.randint(2, (each,), generator=generator) for each in (found, count)]
    moved = every[:found] + torch.randn(found, 1, generator=generator)
    scores = torch.rand(found, generator=generator)
    return {"boxes": moved, "scores": scores, "labels": labels[0]}, {"boxes": every[:count], "labels": labels[1]}


EXACT = {"rec_thresholds": [k / 100 for k in range(101)], "iou_thresholds": [0.5, 0.75]}
DETECTIONS = [
    ("IntersectionOverUnion", {}, 0),
    ("IntersectionOverUnion", {"class_metrics": True, "iou_threshold": 0.3}, 1),
    ("GeneralizedIntersectionOverUnion", {"respect_labels": False}, 0),
    ("DistanceIntersectionOverUnion", {}, 0),
    ("CompleteIntersectionOverUnion", {}, 0),
    ("MeanAveragePrecision", EXACT, 0),
    ("MeanAveragePrecision", {**EXACT, "class_metrics": True}, 0),
]


@pytest.mark.parametrize(("name", "options", "low"), DETECTIONS)
def test_boxes_have_the_dictionaries_of_torchmetrics(name, options, low):
    pytest.importorskip("torchvision")
    generator = torch.Generator().manual_seed(5)
    original, kind = both("detection", name)
    there, here = original(**options), kind(**options)
    for _ in range(2):
        preds, target = zip(*(boxes(generator, low, 5) for _ in range(5)), strict=True)
        same(here(list(preds), list(target)), there(list(preds), list(target)))
    same(here.to("cpu").compute(), there.to("cpu").compute())


class _Narrow(library.Metric):
    """Its `_apply` takes no more than that of `nn.Module`, as that of `MeanAveragePrecision`."""

    def _apply(self, fn):
        return super()._apply(fn, exclude_state=("state",))


class _Moved(AssayMetric, _Narrow):
    pass


def test_a_class_whose_own_apply_takes_a_function_alone_is_moved():
    metric = _Moved(Meter(value=metrics.MeanSquaredError()))
    metric.update(torch.zeros(2), torch.ones(2))
    assert metric.to("cpu") is metric
    assert metric.compute() == 1


@pytest.mark.parametrize(("rows", "is_wanted", "warnings"), [(100, True, 0), (101, True, 1), (101, False, 0)])
def test_more_detections_than_count_are_reported_as_there(rows, is_wanted, warnings, recwarn):
    metric = SimpleNamespace(max_detection_thresholds=[1, 10, 100], warn_on_many_detections=is_wanted)
    check = OF_BOXES["MeanAveragePrecision"].check
    check(metric, [{"scores": torch.ones(3)}, {"scores": torch.ones(rows)}], [{}, {}])
    check(metric, torch.ones(2), 3)  # which the metric refuses
    check(metric, [None, {}], [{}, {}])
    assert [str(each.message)[:43] for each in recwarn] == ["Encountered more than 100 detections in a s"] * warnings


def test_images_with_boxes_on_one_side_add_zeros():
    box, none = torch.tensor([[0.0, 0.0, 2.0, 2.0]]), torch.empty(0, 4)
    labels = [torch.tensor(each, dtype=torch.long) for each in ([1], [], [2, 2])]
    preds = [{"boxes": box, "labels": labels[0]}, {"boxes": none, "labels": labels[1]}]
    target = [{"boxes": box, "labels": labels[0]}, {"boxes": box.repeat(2, 1), "labels": labels[2]}]
    options = OF_BOXES["IntersectionOverUnion"].metric(
        {"box_format": "xyxy", "iou_threshold": None, "class_metrics": True, "respect_labels": True}
    )
    found = {name: value.item() for name, value in options(preds, target).items()}
    assert found == {"iou": pytest.approx(1 / 3), "iou/cl_1": 1, "iou/cl_2": 0}
    squares = PairsAndMisses(metric=IntersectionOverUnion(respect_labels=False))(preds, target)
    assert squares["iou"].item() == pytest.approx(1 / 5)
    nothing = [{"boxes": none, "labels": labels[1]}]
    assert PairsAndMisses(metric=IntersectionOverUnion())(nothing, nothing)["iou"] == 0


def test_an_average_precision_that_is_undefined_is_minus_1():
    family = OF_BOXES["MeanAveragePrecision"]
    options = dict.fromkeys(("iou_thresholds", "rec_thresholds", "max_detection_thresholds"))
    options |= {"extended_summary": False, "iou_type": ("bbox",), "box_format": "xyxy", "average": "macro"}
    preds, target = boxes(torch.Generator().manual_seed(5), 2, 3)
    value = family.metric(options)([preds], [target])
    for per_class in (True, False):
        found = family.value(value, {"class_metrics": per_class})
        assert found["map_large"] == -1
        assert found["classes"].dtype == torch.int32
        assert (found["map_per_class"].ndim == 1) == per_class
    assert found["map_per_class"] == found["mar_100_per_class"] == -1


def test_the_boxes_of_an_average_precision_can_be_written_as_coco_has_them(tmp_path):
    pytest.importorskip("torchvision")
    _, kind = both("detection", "MeanAveragePrecision")
    generator = torch.Generator().manual_seed(5)
    metric = kind()
    assert metric.groundtruth_box == []
    batch = [boxes(generator, 1, 4) for _ in range(4)]
    for each in batch:
        metric.update(*([side] for side in each))
    metric.tm_to_coco(str(tmp_path / "images"))
    found = kind.coco_to_tm(metric, *(str(tmp_path / f"images_{side}.json") for side in ("preds", "target")))
    for side, read in enumerate(found):
        given = sorted(each[side]["boxes"].tolist() for each in batch)
        written = sorted(
            torch.cat([each["boxes"][:, :2], each["boxes"][:, :2] + each["boxes"][:, 2:]], 1).tolist() for each in read
        )
        torch.testing.assert_close(written, given)
    metric = kind(iou_type="segm")
    metric.update(*([side | {"masks": torch.ones(len(side["labels"]), 2, 2, dtype=torch.bool)}] for side in batch[0]))
    with pytest.raises(AttributeError, match="groundtruth_mask"):
        metric.tm_to_coco(str(tmp_path / "masks"))


def test_states_of_an_average_precision_are_those_of_its_images():
    family = OF_BOXES["MeanAveragePrecision"]
    options = dict.fromkeys(("iou_thresholds", "rec_thresholds", "max_detection_thresholds"))
    options |= {"extended_summary": False, "iou_type": ("bbox",), "box_format": "xyxy", "average": "macro"}
    meter = Meter(value=family.metric(options))
    box = torch.tensor([[1.0, 2.0, 4.0, 8.0]])
    preds = {"boxes": box, "labels": torch.tensor([3]), "scores": torch.tensor([0.25])}
    target = {"boxes": box.repeat(2, 1), "labels": torch.tensor([3, 4]), "iscrowd": torch.tensor([0, 1])}
    none = {name: each[:0] for name, each in (preds | target).items()}
    meter.update([preds, none], [target, none])
    counts, metric = meter.counts_of("value"), meter.metrics["value"]
    found = {name: [each.tolist() for each in state(counts, metric)] for name, state in family.states.items()}
    empty_first = found["detection_labels"][0] == []
    expected = {
        "detection_box": [[1, 2, 3, 6]],
        "detection_labels": [3],
        "detection_scores": [0.25],
        "groundtruth_area": [0, 0],
        "groundtruth_box": [[1, 2, 3, 6]] * 2,
        "groundtruth_crowds": [0, 1],
        "groundtruth_labels": [3, 4],
    }
    pairs = {name: [[], each] if empty_first else [each, []] for name, each in expected.items()}
    assert found == {**pairs, "detection_mask": [], "groundtruth_mask": []}
    masks = family.metric({**options, "iou_type": "segm"})
    meter = Meter(value=masks)
    with_mask = [{**each, "masks": torch.ones(len(each["labels"]), 2, 2, dtype=torch.bool)} for each in (preds, target)]
    meter.update(*([each] for each in with_mask))
    counts = meter.counts_of("value")
    assert family.states["detection_mask"](counts, masks) is None
    assert family.states["detection_box"](counts, masks) == []


def test_indices_in_two_dimensions_are_one_image_to_the_mean_iou():
    masks = torch.tensor([[0, 1], [1, 0], [2, 2]])
    original, kind = both("segmentation", "MeanIoU")
    options = {"num_classes": 3, "per_class": True, "input_format": "index"}
    same(kind(**options)(masks, masks), original(**options)(masks, masks))
    assert torchmetrics.functional.segmentation.mean_iou(masks, masks, **options).tolist() == [[1, 1, 1]]


@pytest.mark.parametrize("name", ["PanopticQuality", "ModifiedPanopticQuality"])
def test_unknown_categories_of_predictions_are_refused_as_there(name):
    preds = torch.tensor([[0, 0], [2, 0], [1, 0]])[None]
    target = preds.clamp(max=1)
    for kind in both("detection", name):
        metric = kind(things=[0], stuffs=[1])
        metric.update(target, target)
        with pytest.raises(ValueError, match="Unknown categories found"):
            metric.update(preds, target)
        if kind.__module__.startswith("assay"):
            assert metric.compute() == 1
        kind(things=[0], stuffs=[1]).update(target, preds)
        kind(things=[0], stuffs=[1], allow_unknown_preds_category=True).update(preds, target)
    with pretend("mps"):
        metric.update(preds.to("mps"), target.to("mps"))
        with pytest.raises(InvalidValuesError, match="1"):
            metric.compute()


def test_categories_are_in_increasing_order():
    ids = torch.tensor([[0, 0], [0, 0], [10, 0], [10, 0], [10, 0], [2, 0]])[None]
    found = torch.tensor([[0, 0], [0, 0], [10, 0], [10, 0], [2, 0], [2, 0]])[None]
    options = {"things": [0, 10, 2], "stuffs": [], "return_per_class": True}
    original, kind = both("detection", "PanopticQuality")
    same(kind(**options)(ids, found), original(**options)(ids, found))


def test_an_image_of_another_size_weighs_its_pixels():
    generator = torch.Generator().manual_seed(2)
    for name in ("SpectralAngleMapper", "UniversalImageQualityIndex"):
        original, kind = both("image", name)
        there, here = original(), kind()
        for side in (16, 30):
            batch = images(generator, (2, 3, side, side))
            there.update(*batch)
            here.update(*batch)
        same(here.compute(), there.compute())


def test_known_wrong_numbers_are_right():
    generator = torch.Generator().manual_seed(3)
    batch = images(generator)
    for kind in (RelativeAverageSpectralError, RootMeanSquaredErrorUsingSlidingWindow):
        found = getattr(torchmetrics.image, kind.__name__)()(*batch)
        torch.testing.assert_close(found, kind()(*batch).float())
    offset = tuple(each + 1e4 for each in batch)
    metric = torchmetrics.image.StructuralSimilarityIndexMeasure(data_range=1.0)
    torch.testing.assert_close(metric(*offset), metric(*(each.double() for each in offset)), atol=2e-3, rtol=0)
    wide = torch.zeros(1, 1, 4, 40, dtype=torch.long)
    left, right = wide.clone(), wide.clone()
    left[..., 1:3, 1:3], right[..., 1:3, 31:33] = 1, 1
    distance = torchmetrics.segmentation.HausdorffDistance(num_classes=1, include_background=True)
    assert distance(left, right) == 30


def test_functions_keep_the_dtype_of_the_batch():
    generator = torch.Generator().manual_seed(6)
    for name in ("error_relative_global_dimensionless_synthesis", "spectral_angle_mapper"):
        there, here = both("functional.image", name)
        batch = tuple(each.double() for each in images(generator))
        found, expected = here(*batch), there(*batch)
        assert found.dtype == torch.float64
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=0)
