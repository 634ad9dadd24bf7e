"""Pictures of the worst samples: which ones, what is on them, and that nothing else is read for them."""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, TensorDataset

from assay import evaluate
from assay.errors import ConfigError, ShapeError
from assay.evaluation.data.pictures import LONG_SIDE, box_marks, draw, find_image
from assay.metrics import Accuracy, LogLoss, MeanAveragePrecision, MeanIoU
from assay.render.html import to_html
from assay.render.pictures import Picture, PictureBox, to_png
from assay.report import Report, compare
from assay.report.worst import MOST_PICTURES, chosen_errors, worst_errors
from ranks import processes

COUNT = 60


def pixels_of(picture: Picture) -> np.ndarray:
    image = Image.open(io.BytesIO(base64.b64decode(picture.png)))
    assert image.size == (picture.width, picture.height)
    return np.array(image)


@pytest.mark.parametrize("shape", [(5, 7), (1, 1), (9, 4, 3)])
def test_a_png_has_the_pixels_that_were_given(shape):
    pixels = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
    assert np.array_equal(pixels_of(Picture.of("", pixels)), pixels)


def test_what_is_no_image_is_refused():
    with pytest.raises(ShapeError, match=r"\(2, 2, 5\)"):
        to_png(np.zeros((2, 2, 5), np.uint8))
    with pytest.raises(ConfigError, match="abc"):
        Picture("1", "abc", 1, 1)


@pytest.mark.parametrize(
    ("arguments", "shape"),
    [
        (((torch.zeros(4, 3, 9, 8),), {}), (3, 9, 8)),
        (((torch.zeros(4, 9, 8),), {}), (9, 8)),
        ((([torch.zeros(3, 9, 8), torch.zeros(3, 5, 5)],), {}), (3, 9, 8)),
        (((), {"mask": torch.ones(4, 9), "pixel_values": torch.zeros(4, 1, 2, 2)}), (1, 2, 2)),
        (((torch.zeros(4, 64),), {}), None),
        (((torch.zeros(4, 9, 3),), {}), None),
        (((torch.zeros(4, 7, 9, 9),), {}), None),
        (((["a", "b"], []), {}), None),
    ],
)
def test_an_image_is_found_by_its_shape(arguments, shape):
    found = find_image(arguments)
    assert (None if found is None else found.shape) == shape


def test_values_of_any_range_are_seen():
    gray = torch.tensor([[0.0, 0.5], [1.0, 0.25]])
    assert pixels_of(draw("", gray, None, ())).tolist() == [[0, 128], [255, 64]]
    assert pixels_of(draw("", (51 * gray[None]).to(torch.uint8), None, ())).tolist() == [[0, 25], [51, 12]]
    assert pixels_of(draw("", 2000 * gray - 1000, None, ())).tolist() == [[0, 128], [255, 64]]
    assert pixels_of(draw("", torch.full((2, 2), torch.nan), None, ())).max() == 0
    large = draw("", torch.rand(4, 800, 400), None, ())
    assert (large.height, large.width) == (LONG_SIDE, LONG_SIDE // 2)


class Images(Dataset):
    """Images of one number each, and which of them were read."""

    def __init__(self, target: torch.Tensor, image: torch.Tensor) -> None:
        self.target, self.image, self.read = target, image, []

    def __len__(self):
        return COUNT

    def __getitem__(self, k):
        self.read.append(k)
        return self.image[k], self.target[k]


def classified(batch_size=16, shuffle=False):
    """A model that reads its logits in the pixels."""
    generator = torch.Generator().manual_seed(0)
    images = Images(torch.randint(3, (COUNT,), generator=generator), torch.rand(COUNT, 1, 2, 3, generator=generator))
    data = DataLoader(images, batch_size=batch_size, shuffle=shuffle)
    metrics = {"accuracy": Accuracy(num_classes=3), "loss": LogLoss(num_classes=3)}
    report = evaluate(lambda x: (9 * x[:, 0, 0]).softmax(1), data, metrics, device="cpu", n_resamples=25)
    return report.sections[0], images


def pictured(section):
    """The ids of the worst samples, and of the other errors whose ids have the lowest hashes."""
    worst = [row[0] for row in worst_errors(section).rows[:MOST_PICTURES]]
    chosen = [str(section.samples.ids.values[row]) for row in chosen_errors(section, MOST_PICTURES)]
    assert len(set(worst + chosen)) > MOST_PICTURES
    return list(dict.fromkeys(worst + chosen))


@pytest.mark.parametrize(("batch_size", "shuffle"), [(1, False), (7, True), (COUNT, False)])
def test_the_worst_errors_of_a_classification_have_pictures(batch_size, shuffle):
    section, images = classified(batch_size, shuffle)
    kept = pictured(section)
    assert [each.id for each in section.samples.pictures] == kept
    for each in section.samples.pictures:
        expected = (255 * images.image[int(each.id), 0].double()).round()
        assert np.array_equal(pixels_of(each), expected.numpy())
    assert images.read[COUNT:] == sorted(map(int, kept))
    report = Report("r", [section])
    assert Report.from_json(report.to_json()) == report
    assert to_html(report.to_document()).count("data:image/png") == MOST_PICTURES


def test_a_comparison_shows_what_changed_in_both_directions_of_the_samples_with_a_picture():
    generator = torch.Generator().manual_seed(0)
    target, image = torch.randint(2, (600,), generator=generator), torch.rand(600, 1, 2, 3, generator=generator)
    noise, reports = torch.rand(2, 600, generator=generator), []
    for each in noise:
        right = 0.5 + 0.3 * image[:, 0, 0, 0] + 0.4 * (each - 0.6)
        scores = {float(x[0, 0, 1]): p if y else 1 - p for x, y, p in zip(image, target, right, strict=True)}
        model = lambda x, scores=scores: torch.stack([scores[float(each[0, 0, 1])] for each in x])  # noqa: E731
        options = {"device": "cpu", "n_resamples": 25, "batch_size": 50}
        reports.append(evaluate(model, TensorDataset(image, target), [Accuracy(), LogLoss()], **options))
    errors = [set(chosen_errors(each.sections[0], 600).tolist()) for each in reports]
    both = set.intersection(*errors)
    chosen = [[row for row in chosen_errors(each.sections[0], 40).tolist() if row in both] for each in reports]
    assert all(one == other for one, other in zip(*chosen, strict=False))
    for changes in compare(*reports).changes:
        worse = 1 if changes.metric == "LogLoss" else -1
        for sign, several in ((worse, changes.worst_pictured), (-worse, changes.best_pictured)):
            assert all(each.picture is not None and each.picture.id == each.id for each in several)
            sizes = [sign * (each.score_now - each.score_before) for each in several]
            assert min(sizes) > 0
            assert sizes == sorted(sizes, reverse=True)


def pictures_on_rank(rank, size):
    return [[each.id, each.png] for each in classified(8)[0].samples.pictures]


def test_several_processes_have_the_same_pictures(tmp_path):
    expected = pictures_on_rank(0, 1)
    assert all(found == expected for found in processes(pictures_on_rank, 2, tmp_path))


@pytest.mark.parametrize(
    ("image", "data"),
    [
        (torch.rand(COUNT, 3), lambda images: DataLoader(images, 9)),
        (torch.rand(COUNT, 1, 1, 3), lambda images: iter(DataLoader(images, 9))),
    ],
)
def test_nothing_is_read_again_without_images_or_indices(image, data):
    images = Images(torch.zeros(COUNT, dtype=torch.int64), image)
    report = evaluate(lambda x: x.flatten(1), data(images), Accuracy(num_classes=3), device="cpu", n_resamples=25)
    assert report.sections[0].samples is None or not report.sections[0].samples.pictures
    assert len(images.read) == COUNT


def test_a_sample_that_cannot_be_read_again_costs_its_picture_and_not_the_report():
    class Once(Images):
        def __getitem__(self, k):
            if self.read.count(k):
                raise OSError("the disk is gone")
            return super().__getitem__(k)

    images = Once(torch.zeros(COUNT, dtype=torch.int64), torch.rand(COUNT, 1, 1, 3))
    report = evaluate(lambda x: x.flatten(1), DataLoader(images, 9), Accuracy(num_classes=3), device="cpu")
    assert report.sections[0].values[0].count == COUNT
    assert not report.sections[0].samples.pictures
    assert any("OSError: the disk is gone" in note for note in report.notes)


def test_masks_of_prediction_and_target_are_painted_on_two_copies():
    generator = torch.Generator().manual_seed(1)
    target = torch.randint(3, (20, 4, 6), generator=generator)
    image = torch.rand(20, 3, 8, 12, generator=generator)
    preds = {float(x[0, 0, 0]): torch.randint(3, (4, 6), generator=generator) for x in image}
    report = evaluate(
        lambda x: torch.stack([preds[float(each[0, 0, 0])] for each in x]),
        TensorDataset(image, target),
        MeanIoU(num_classes=3),
        device="cpu",
        batch_size=3,
        n_resamples=25,
    )
    section = report.sections[0]
    assert [each.id for each in section.samples.pictures] == pictured(section)
    assert not section.samples.raw
    for each in section.samples.pictures:
        k = int(each.id)
        shown, plain = pixels_of(each).astype(int), (255 * image[k].permute(1, 2, 0)).round().int().numpy()
        sides = zip((shown[:, :12], shown[:, -12:]), (preds[float(image[k, 0, 0, 0])], target[k]), strict=True)
        for side, mask in sides:
            tinted = (side != plain).any(-1)
            assert np.array_equal(tinted, np.kron(mask.numpy() > 0, np.ones((2, 2), bool)))


def detections(seed: int, scored: bool) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed // 2)
    count = int(torch.randint(0, 5, (), generator=generator))
    corner = 60 * torch.rand(count, 2, generator=generator)
    boxes = torch.cat([corner, corner + 20], 1)
    labels = torch.randint(0, 3, (count,), generator=generator)
    if not scored:
        return {"boxes": boxes, "labels": labels}
    generator.manual_seed(seed)
    shift = 8 * torch.rand(count, 1, generator=generator)
    return {"boxes": boxes + shift, "labels": labels, "scores": torch.rand(count, generator=generator)}


def detected(batch_size=7):
    preds = [detections(2 * k + 1, True) for k in range(COUNT)]
    target = [detections(2 * k, False) for k in range(COUNT)]
    images = [torch.full((3, 96, 80), k / COUNT) for k in range(COUNT)]

    class Scenes(Dataset):
        def __len__(self):
            return COUNT

        def __getitem__(self, k):
            return images[k], target[k], f"scene {k}"

    def collate(samples):
        return tuple(map(list, zip(*samples, strict=True)))

    def model(batch):
        return [preds[round(float(each[0, 0, 0]) * COUNT)] for each in batch]

    loader = DataLoader(Scenes(), batch_size, collate_fn=collate)
    options = {"ids": 2, "classes": ("cat", "dog", "<b>cow</b>"), "n_resamples": 25}
    report = evaluate(model, loader, MeanAveragePrecision(), inputs=0, target=1, device="cpu", **options)
    return report, preds, target


@pytest.mark.parametrize("batch_size", [1, 7])
def test_the_worst_scenes_are_shown_with_their_boxes(batch_size):
    report, preds, target = detected(batch_size)
    (section,) = report.sections
    one = MeanAveragePrecision(iou_thresholds=(0.5,))
    expected = np.array([float(one([p], [t])["map"]) for p, t in zip(preds, target, strict=True)])
    column = section.samples.column("average precision at IoU 0.5")
    np.testing.assert_allclose(column, expected[[int(name[6:]) for name in section.samples.ids.values]], atol=1e-12)
    worst = worst_errors(section)
    assert worst.columns == ("id", "target", "prediction", "average precision at IoU 0.5")
    assert [row[-1] for row in worst.rows] == sorted(row[-1] for row in worst.rows)
    assert [each.id for each in section.samples.pictures] == pictured(section)
    for each in section.samples.pictures:
        k = int(each.id[6:])
        true = [box for box in each.boxes if box.score is None]
        edges = [[box.left, box.top, box.right, box.bottom] for box in true]
        np.testing.assert_allclose(edges, target[k]["boxes"], atol=0.006)
        assert [box.label for box in true] == [("cat", "dog", "<b>cow</b>")[label] for label in target[k]["labels"]]
        assert len(each.boxes) - len(true) == int((preds[k]["scores"] >= 0.3).sum())
    page = to_html(report.to_document())
    assert "<b>cow" not in page
    assert page.count("<rect ") == 2 * sum(len(each.boxes) for each in section.samples.pictures[:MOST_PICTURES])
    assert "scene" in report.to_text()
    assert "data:image" not in report.to_markdown()


@pytest.mark.parametrize(
    ("box_format", "box"), [("xyxy", (4, 6, 14, 16)), ("xywh", (4, 6, 10, 10)), ("cxcywh", (9, 11, 10, 10))]
)
def test_boxes_of_every_format_lie_where_they_are(box_format, box):
    target = {"boxes": torch.tensor([box]), "labels": torch.tensor([7])}
    marks = box_marks(target | {"scores": torch.tensor([0.9])}, target, box_format)
    picture = draw("", torch.zeros(3, 2 * LONG_SIDE, 30), marks, ())
    assert picture.boxes == (
        PictureBox(2, 3, 7, 8, "class 7"),
        PictureBox(2, 3, 7, 8, "class 7", marks["boxes"][1][-1]),
    )
