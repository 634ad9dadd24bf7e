from __future__ import annotations

import numpy as np
import pytest
import torch

from assay.errors import ConfigError, InputError, InvalidValuesError, InvalidValuesWarning, ShapeError
from assay.meter import Meter
from assay.meter.resampling.replicates import drawn_values
from assay.metrics import MeanAveragePrecision
from assay.metrics.detection import average_precision, curves, matching
from assay.native import library
from assay.wrappers import Bootstrap
from laws import bits
from thinning import draws

from .scenes import coco_values, masked_scenes, scenes

OPTIONS = (
    {},
    {"max_detection_thresholds": (1, 3)},
    {"iou_thresholds": (0.1, 0.5, 1.0), "rec_thresholds": (0.0, 0.3, 1.0)},
)
BOX = torch.tensor([[10.0, 10.0, 60.0, 60.0]])
IMAGE = {"boxes": BOX, "scores": torch.tensor([0.5]), "labels": torch.tensor([1])}


def close(value: float, expected: float) -> bool:
    return value == pytest.approx(expected, rel=0, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("native", [True, False])
def test_the_numbers_are_those_of_pycocotools(native, monkeypatch):
    if not native:
        for module in (matching, curves):
            monkeypatch.setattr(module, "library", lambda: None)
    for seed in draws(200 if native else 60):
        rng = np.random.default_rng(seed)
        preds, target = scenes(rng, int(rng.integers(1, 9)), int(rng.integers(1, 5)))
        options = OPTIONS[seed % len(OPTIONS)]
        values = MeanAveragePrecision(class_metrics=True, **options)(preds, target)
        expected, of_class = coco_values(preds, target, **options)
        assert {name for name, each in values.items() if not each.ndim} == expected.keys()
        assert all(close(float(values[name]), each) for name, each in expected.items()), (seed, values, expected)
        most = options.get("max_detection_thresholds", (100,))[-1]
        per_class = zip(values["map_per_class"].tolist(), values[f"mar_{most}_per_class"].tolist(), strict=True)
        found = dict(zip(values["classes"].tolist(), per_class, strict=True))
        assert found.keys() == of_class.keys()
        assert all(close(a, b) for k in found for a, b in zip(found[k], of_class[k], strict=True))


@pytest.mark.parametrize("iou_type", ["bbox", ("bbox", "segm")])
def test_detections_of_a_negative_size_count_as_in_pycocotools(iou_type):
    for seed in draws(12):
        rng = np.random.default_rng(seed)
        preds, target = scenes(rng, 6, 2)
        turned = 0
        for image in preds:
            for box in image["boxes"]:
                sides = rng.random(2) < 0.3  # one side gives a negative area, both a positive one
                for side in np.flatnonzero(sides):
                    box[[side, side + 2]] = box[[side + 2, side]] + torch.tensor([1.0, 0.0])
                turned += bool(sides.any())
        if iou_type != "bbox":
            for image in (*preds, *target):
                image["masks"] = torch.zeros(len(image["labels"]), 4, 4, dtype=torch.bool)
        with pytest.warns(InvalidValuesWarning, match=f"got {turned} of the .* box_format='xywh' or 'cxcywh'"):
            values = MeanAveragePrecision(iou_type=iou_type)(preds, target)
        expected, _ = coco_values(
            *([{k: v for k, v in each.items() if k != "masks"} for each in side] for side in (preds, target))
        )
        prefix = "" if iou_type == "bbox" else "bbox_"
        assert all(close(float(values[prefix + name]), each) for name, each in expected.items())


def test_flags_of_both_matchers_are_equal_with_ties_and_small_blocks(monkeypatch):
    if library.library() is None:
        pytest.skip("needs a C compiler")
    for seed in draws(20):
        rng = np.random.default_rng(seed)
        starts = [np.append(0, np.cumsum(rng.integers(0, 6, 30))) for _ in range(2)]
        boxes = [rng.integers(0, 6, (int(each[-1]), 4)).astype(np.float64) for each in starts]
        crowd = (rng.random(len(boxes[1])) < 0.2).astype(np.uint8)
        ignored = (rng.random((4, len(boxes[1]))) < 0.3).astype(np.uint8)
        places, truths = rng.permutation(len(boxes[0])), (starts[1][:-1], starts[1][1:])
        overlaps = matching.BoxOverlaps((boxes[0], boxes[1]))
        items = matching.Items(overlaps, places, starts[0], truths, crowd, ignored)
        thresholds = np.array([0.0, 0.25, 0.5, 0.75, 1 - 1e-10])
        flags = 2 * (rng.random((4, 5, len(boxes[0]))) < 0.3).astype(np.uint8)
        others = flags.copy()
        matching.write_matches(flags, items, thresholds)
        monkeypatch.setattr(matching, "_ELEMENTS", int(rng.integers(1, 5000)))
        matching.match_in_blocks(others, items, thresholds)
        assert (flags == others).all()


def test_precisions_of_both_loops_have_the_same_bits(monkeypatch):
    if library.library() is None:
        pytest.skip("needs a C compiler")
    for seed in draws(20):
        preds, target = scenes(np.random.default_rng(seed), 12, 3)
        for image in preds:
            image["scores"] = (image["scores"] * 8).floor() / 8
        expected = bits(MeanAveragePrecision(class_metrics=True)(preds, target))
        with monkeypatch.context() as patch:
            patch.setattr(curves, "library", lambda: None)
            assert bits(MeanAveragePrecision(class_metrics=True)(preds, target)) == expected


def test_equal_scores_of_several_images_are_one_step_in_any_order():
    rng = np.random.default_rng(0)
    preds, target = scenes(rng, 40, 2)
    for image in preds:
        image["scores"] = (image["scores"] * 4).floor() / 4
    expected = bits(MeanAveragePrecision(class_metrics=True)(preds, target))
    for _ in range(3):
        order = rng.permutation(40)
        shuffled = MeanAveragePrecision(class_metrics=True)([preds[k] for k in order], [target[k] for k in order])
        assert bits(shuffled) == expected
    hit, miss = IMAGE, IMAGE | {"boxes": BOX + 500}
    truths = {name: IMAGE[name] for name in ("boxes", "labels")}
    value = MeanAveragePrecision()([hit, miss], [truths, truths])["map"]
    assert float(value) == pytest.approx(51 / 101 / 2)  # one step with precision 1/2 at recall 1/2


def test_formats_are_the_same_boxes_and_micro_is_one_class():
    preds, target = scenes(np.random.default_rng(3), 12, 3)
    preds, target = ([image | {"boxes": image["boxes"].round()} for image in images] for images in (preds, target))
    expected = MeanAveragePrecision()(preds, target)
    to = {"xywh": lambda a, b: (a, b - a), "cxcywh": lambda a, b: ((a + b) / 2, b - a)}
    for box_format, change in to.items():
        changed = [
            [image | {"boxes": torch.cat(change(*image["boxes"].split(2, 1)), 1)} for image in images]
            for images in (preds, target)
        ]
        assert bits(MeanAveragePrecision(box_format)(*changed)) == bits(expected)
    one = [[image | {"labels": image["labels"] * 0} for image in images] for images in (preds, target)]
    assert bits(MeanAveragePrecision(average="micro")(preds, target)) == bits(MeanAveragePrecision()(*one))


def test_images_without_boxes_count_and_no_truth_is_nan():
    empty = {"boxes": torch.tensor([]), "scores": torch.tensor([]), "labels": torch.tensor([])}
    values = MeanAveragePrecision(class_metrics=True)([empty, IMAGE, empty], [empty, IMAGE, IMAGE])
    assert float(values["map"]) == pytest.approx(51 / 101)
    values = MeanAveragePrecision(class_metrics=True)([empty, IMAGE], [empty, empty])
    assert values["map"].isnan()
    assert values["map_per_class"].isnan().all()
    assert MeanAveragePrecision(class_metrics=True)([empty], [empty])["map_per_class"].shape == (0,)


@pytest.mark.parametrize("name", ["iscrowd", "area"])
def test_images_without_an_optional_field_have_what_it_is_by_default(name):
    preds, target = scenes(np.random.default_rng(5), 6, 2)
    plain = [{key: each for key, each in image.items() if key not in ("iscrowd", "area")} for image in target]
    written = [image | ({name: default_of(name, image)} if k % 2 else {}) for k, image in enumerate(plain)]
    assert bits(MeanAveragePrecision()(preds, written)) == bits(MeanAveragePrecision()(preds, plain))


def test_without_areas_those_of_the_boxes_say_what_is_small():
    preds, target = scenes(np.random.default_rng(6), 12, 2)
    plain = [{key: each for key, each in image.items() if key not in ("iscrowd", "area")} for image in target]
    areas = [(image["boxes"][:, 2:] - image["boxes"][:, :2]).prod(1) for image in plain]
    sized = [image | {"area": area} for image, area in zip(plain, areas, strict=True)]
    assert any((area > 32**2).any() for area in areas)
    assert bits(MeanAveragePrecision()(preds, sized)) == bits(MeanAveragePrecision()(preds, plain))


def default_of(name, image):
    if name == "iscrowd":
        return torch.zeros(len(image["labels"]), dtype=torch.bool)
    return torch.full((len(image["labels"]),), torch.nan)


def test_a_bootstrap_counts_every_image_once():
    preds, target = scenes(np.random.default_rng(5), 40, 2)
    bootstrap = Bootstrap(Meter(m=MeanAveragePrecision()), groups=16)
    for start in range(0, 40, 7):
        bootstrap.update(preds[start : start + 7], target[start : start + 7])
    assert bits(bootstrap.compute()["m"]) == bits(MeanAveragePrecision()(preds, target))
    assert bootstrap.rows == 40


@pytest.mark.parametrize(
    ("changes", "position"),
    [
        ({"boxes": torch.tensor([[10.0, 10.0, torch.inf, 20.0]])}, r"preds\[1\]\['boxes'\]\[0\]"),
        ({"boxes": torch.tensor([[10.0, torch.nan, 15.0, 20.0]])}, r"preds\[1\]\['boxes'\]\[0\]"),
        ({"scores": torch.tensor([torch.nan])}, r"preds\[1\]\['scores'\]\[0\]"),
        ({"boxes": BOX[0]}, r"preds\[1\]\['boxes'\]"),
        ({"boxes": torch.zeros(1, 5)}, r"preds\[1\]\['boxes'\]"),
        ({"scores": torch.zeros(2)}, r"preds\[1\]\['scores'\]"),
        ({"scores": None}, r"preds\[1\]\['scores'\]"),
        ({"labels": None}, r"preds\[1\]\['labels'\]"),
        ({"labels": torch.tensor([0.5])}, r"preds\[1\]\['labels'\]"),
        ({"boxes": [[1, 2, 3, 4]]}, r"preds\[1\]\['boxes'\]"),
    ],
)
def test_bad_images_raise_with_their_position_and_nothing_is_counted(changes, position):
    meter = Meter(m=MeanAveragePrecision())
    with pytest.raises(InputError, match=position):
        meter.update([IMAGE, IMAGE | changes], [IMAGE, IMAGE])
    assert meter.rows == 0
    meter.update([IMAGE], [IMAGE])
    assert float(meter.compute()["m"]["map"]) == 1


def test_other_bad_arguments_raise():
    metric = MeanAveragePrecision()
    for preds, target in (([IMAGE, IMAGE], [IMAGE]), (IMAGE, IMAGE), ([BOX], [BOX]), ([IMAGE], None)):
        with pytest.raises(ShapeError, match=r"got .*, expected"):
            metric(preds, target)
    with pytest.raises(ConfigError, match="weights"):
        Meter(m=metric, weighted=True)
    for wrong in (
        {"box_format": "yxyx"},
        {"iou_thresholds": (0.5, 0.5)},
        {"iou_thresholds": (50,)},
        {"max_detection_thresholds": (100, 10)},
        {"max_detection_thresholds": ()},
        {"rec_thresholds": 0.5},
        {"average": "weighted"},
    ):
        with pytest.raises(ConfigError, match=next(iter(wrong))):
            MeanAveragePrecision(**wrong)


@pytest.mark.devices("mps", "cuda:1", "xpu")
def test_invalid_values_on_a_device_raise_when_they_are_computed(device, pretended):
    bad = {name: each.to(device) for name, each in (IMAGE | {"boxes": BOX.flip(1)}).items()}
    meter = Meter(m=MeanAveragePrecision())
    meter.update([bad], [bad])
    with pytest.raises(InvalidValuesError, match="1 of the truths, whose boxes have a negative size"):
        meter.compute()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"average": "micro", "class_metrics": True, "max_detection_thresholds": (1, 2)},
        {"iou_type": ("bbox", "segm"), "rare_classes": (0,), "frequent_classes": (1, 7)},
        {"federated": True, "max_detection_thresholds": (3,), "iou_thresholds": (0.3, 0.5)},
    ],
)
def test_replicates_match_each_set_of_detections_once_and_have_the_bits_of_repeated_images(options, monkeypatch):
    metric, rng = MeanAveragePrecision(**options), np.random.default_rng(3)
    preds, target = (masked_scenes if "segm" in metric.iou_type else scenes)(rng, 30, 4)
    for image in preds:
        image["scores"] = (image["scores"] * 8).floor() / 8  # with ties
    for image in (preds[0], target[0]):
        image["labels"] += 4  # classes of one image, which many draws leave out
    groups = []
    for start in range(0, 30, 2):
        group = Meter(x=metric)
        group.update(preds[start : start + 2], target[start : start + 2])
        groups.append(group)
    calls, match = [], average_precision.matches
    monkeypatch.setattr(average_precision, "matches", lambda *args: calls.append(1) or match(*args))
    found = drawn_values(groups, 30)
    assert len(calls) == len(metric._iou_types)
    monkeypatch.setattr(MeanAveragePrecision, "values_of_draws", lambda *_: None)
    expected = drawn_values(groups, 30)
    assert len(calls) > 30
    assert found.keys() == expected.keys()
    assert all(len(each) == 31 for each in found.values())
    for name, values in expected.items():
        assert np.array(found[name]).tobytes() == np.array(values).tobytes(), name


@pytest.mark.parametrize("average", ["macro", "micro"])
def test_replicates_without_any_box_are_undefined(average, monkeypatch):
    metric = MeanAveragePrecision(average=average, max_detection_thresholds=(1, 2))
    empty = {"boxes": torch.empty(0, 4), "labels": torch.empty(0, dtype=torch.long), "scores": torch.empty(0)}
    groups = []
    for image in [IMAGE] + [empty] * 11:
        group = Meter(x=metric)
        group.update([image], [{name: image[name] for name in ("boxes", "labels")}])
        groups.append(group)
    found = drawn_values(groups, 30)
    monkeypatch.setattr(MeanAveragePrecision, "values_of_draws", lambda *_: None)
    expected = drawn_values(groups, 30)
    assert 3 < np.isnan(found["x map"]).sum() < 20  # a draw leaves out the one image with a box in 37 of 100 cases
    for name, values in expected.items():
        assert np.array(found[name]).tobytes() == np.array(values).tobytes(), name
