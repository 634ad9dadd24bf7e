from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
import torch

from assay.errors import AssayWarning, ConfigError, DtypeError, InvalidValuesError, ShapeError
from assay.meter import Meter
from assay.metrics import ModifiedPanopticQuality, PanopticQuality
from laws import bits
from thinning import draws

KINDS = (PanopticQuality, ModifiedPanopticQuality)
THINGS, STUFFS = (3, 1), (8, 20, 7)
ORDERED = (1, 3, 7, 8, 20)


def drawn(rng: np.random.Generator, images: int, side: int = 7, unknown: bool = True) -> list[np.ndarray]:
    """Preds and target with coarse segments, large ids, and unknown categories in the target, or in both."""
    blocks = rng.integers(1, 4, 2)
    shape = (images, -(-side // blocks[0]), -(-side // blocks[1]))

    def spread(values):
        return np.kron(values, np.ones((1, *blocks), np.int64))[:, :side, :side]

    target = np.stack([rng.choice((*ORDERED, 0, 30), shape), rng.choice((0, -5, 1 << 40), shape)], -1)
    target = np.stack([spread(target[..., k]) for k in (0, 1)], -1)
    other = np.stack([rng.choice((*ORDERED, 5), target.shape[:-1]), rng.integers(0, 3, target.shape[:-1])], -1)
    preds = np.where(rng.random((images, side, side, 1)) < rng.random(), target, other)
    if not unknown:
        preds[..., 0] = np.where(np.isin(preds[..., 0], ORDERED), preds[..., 0], 7)
    return [preds, target]


def qualities(preds: np.ndarray, target: np.ndarray, modified: bool = False) -> list[tuple[Fraction, ...] | None]:
    """The definition, segment by segment, in fractions: (PQ, SQ, RQ) of each category that occurs."""
    overlap, hits, alarms, misses = (dict.fromkeys(ORDERED, Fraction(0)) for _ in range(4))
    for own, true in zip(preds, target, strict=True):
        p, t = ([_segment(*pixel) for pixel in side.reshape(-1, 2).tolist()] for side in (own, true))
        both, p_area, t_area = Counter(zip(p, t, strict=True)), Counter(p), Counter(t)
        pairs = []
        for (a, b), count in both.items():
            if a and b and a[0] == b[0]:
                iou = Fraction(count, p_area[a] - both[a, None] + t_area[b] - count)
                if iou > Fraction(1, 2) or (modified and a[0] in STUFFS):
                    overlap[a[0]] += iou
                    pairs.append((a, b))
        for each in t_area:
            if each and modified and each[0] in STUFFS:
                hits[each[0]] += 1
            elif each:
                (hits if each in {b for _, b in pairs} else misses)[each[0]] += 1
        for each in p_area:
            found = not each or each in {a for a, _ in pairs} or (modified and each[0] in STUFFS)
            if not found and 2 * both[each, None] <= p_area[each]:
                alarms[each[0]] += 1
    totals = {c: hits[c] + (alarms[c] + misses[c]) / 2 for c in ORDERED}
    return [
        (overlap[c] / totals[c], overlap[c] / hits[c] if hits[c] else Fraction(0), hits[c] / totals[c])
        if totals[c]
        else None
        for c in ORDERED
    ]


def _segment(category: int, instance: int) -> tuple[int, int] | None:
    return (category, 0 if category in STUFFS else instance) if category in ORDERED else None


@pytest.mark.parametrize("kind", KINDS)
def test_the_qualities_are_those_of_the_definition(kind):
    for seed in draws(200):
        rng = np.random.default_rng(seed)
        sides = drawn(rng, int(rng.integers(1, 5)))
        options = {"things": set(THINGS), "stuffs": STUFFS, "allow_unknown_preds_category": True}
        found = kind(**options, return_per_class=True, return_sq_and_rq=True)(*map(torch.from_numpy, sides))
        expected = qualities(*sides, kind is ModifiedPanopticQuality)
        for k, column in enumerate(found):
            values = [float(each[k]) if each else float("nan") for each in expected]
            assert column.tolist() == pytest.approx(values, rel=0, abs=1e-12, nan_ok=True), seed
        present = [each for each in expected if each]
        mean = kind(**options)(*map(torch.from_numpy, sides))
        assert float(mean) == pytest.approx(float(sum(each[0] for each in present) / len(present)), rel=0, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_torchmetrics_agrees_where_preds_have_known_categories(kind):
    detection = pytest.importorskip("torchmetrics.detection")
    for seed in draws(20):
        sides = [torch.from_numpy(side) for side in drawn(np.random.default_rng(seed), 3, unknown=False)]
        theirs = getattr(detection, kind.__name__)(things=set(THINGS), stuffs=set(STUFFS))(*sides)
        assert float(kind(things=THINGS, stuffs=STUFFS)(*sides)) == pytest.approx(float(theirs), abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_names_of_instances_the_order_of_pixels_and_the_dtype_change_no_bit(kind):
    preds, target = (torch.from_numpy(side) for side in drawn(np.random.default_rng(1), 6))
    metric = kind(things=THINGS, stuffs=STUFFS, allow_unknown_preds_category=True, return_per_class=True)
    expected = bits(metric(preds, target))
    renamed = [side * torch.tensor([1, -3]) + torch.tensor([0, 7]) for side in (preds, target)]
    order = torch.randperm(49, generator=torch.Generator().manual_seed(0))
    moved = [side.flatten(1, 2)[:, order] for side in (preds, target)]
    few = [side * torch.tensor([1, 0]) + (side[..., 1:] > 0) * torch.tensor([0, 1]) for side in (preds, target)]
    assert bits(metric(*renamed)) == bits(metric(*moved)) == expected
    assert bits(metric(*few)) == bits(metric(*(side.to(torch.int8) for side in few)))


def test_a_segment_of_exactly_half_is_no_match_and_no_image_is_nan():
    target = torch.tensor([[[1, 0], [1, 0], [7, 0]]])
    preds = torch.tensor([[[1, 0], [7, 0], [7, 0]]])
    found = PanopticQuality(things=(1,), stuffs=(7,), return_per_class=True)(preds, target)
    assert found.tolist() == [0, 0]
    with pytest.warns(AssayWarning, match="categories"):
        assert PanopticQuality(things=(1,), stuffs=(7,), allow_unknown_preds_category=True)(
            target * 9, target * 9
        ).isnan()


def test_weights_of_images_count_as_copies():
    preds, target = (torch.from_numpy(side) for side in drawn(np.random.default_rng(2), 3))
    metric = PanopticQuality(things=THINGS, stuffs=STUFFS, allow_unknown_preds_category=True)
    copies = torch.tensor([0, 1, 1, 2, 2, 2])
    assert metric(preds, target, weights=torch.tensor([1.0, 2, 3])) == metric(preds[copies], target[copies])


def test_too_many_segments_and_unknown_categories_raise_when_they_are_computed():
    pixels = torch.stack([torch.ones(2, 6, dtype=torch.int64), torch.arange(6).expand(2, 6)], -1)
    few = pixels * torch.tensor([1, 0])
    for sides in ((pixels, few), (few, pixels)):
        meter = Meter(m=PanopticQuality(things=(1,), stuffs=(), max_segments=5))
        meter.update(*sides)
        with pytest.raises(InvalidValuesError, match=r"got 2 of the .*max_segments=5"):
            meter.compute()
    assert PanopticQuality(things=(1,), stuffs=(), max_segments=6)(pixels, pixels) == 1
    mixed = pixels.clone()
    mixed[:, :3, 0] = 2  # with stuff there are 4 segments, and 4 different ids
    assert PanopticQuality(things=(1,), stuffs=(2,), max_segments=4)(mixed, mixed) == 1
    with pytest.raises(InvalidValuesError, match="neither in things nor in stuffs"):
        PanopticQuality(things=(1,), stuffs=())(mixed, mixed)


def test_bad_arguments_raise():
    metric = PanopticQuality(things=(1,), stuffs=(7,))
    pixels = torch.zeros(2, 4, 4, 2, dtype=torch.int64)
    for preds, target in (
        (pixels, pixels[..., 0]),
        (pixels[..., 0], pixels[..., 0]),
        (pixels[:, 0, 0], pixels[:, 0, 0]),
    ):
        with pytest.raises(ShapeError, match=r"\(N, \.\.\., 2\)"):
            metric(preds, target)
    with pytest.raises(DtypeError, match="target"):
        metric(pixels, pixels.float())
    for wrong in (
        {"stuffs": (1,)},
        {"things": (), "stuffs": ()},
        {"things": "12"},
        {"things": (0.5,)},
        {"things": (1 << 21,)},
        {"max_segments": 0},
    ):
        with pytest.raises(ConfigError, match=next(reversed(wrong))):
            PanopticQuality(**{"things": (1,), "stuffs": (7,)} | wrong)
