"""CLIPScore, CLIP-IQA and LPIPS of tiny local networks beside TorchMetrics and beside their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity

import assay
from assay.errors import ConfigError, InvalidValuesError, ShapeError
from assay.integrations import clip_image_quality, clip_score, lpips
from assay.meter import Meter
from assay.metrics.per_sample import per_sample_values
from tiny_networks import clip

CAPTIONS = ["a cat", "the red dog sat on the mat .", "photo of a dog"] * 3


@pytest.fixture(scope="module")
def local():
    model, processor = clip()
    return model.eval(), processor


def images(seed: int, count: int = 9) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 256, (count, 3, 20, 24), generator=generator, dtype=torch.uint8)


def image_features(local, pictures):
    model, processor = local
    with torch.no_grad():
        given = processor(images=list(pictures), return_tensors="pt")
        return model.get_image_features(**given).pooler_output


def text_features(local, texts):
    model, processor = local
    with torch.no_grad():
        features = [
            model.get_text_features(**processor(text=[each], return_tensors="pt", truncation=True, max_length=12))
            for each in texts
        ]
        return torch.cat([each.pooler_output for each in features])


def test_clip_score_is_its_formula_for_each_pair(local):
    pictures = images(0)
    metric = clip_score(*local)
    found = per_sample_values(metric, pictures, CAPTIONS)
    cosines = cosine_similarity(image_features(local, pictures), text_features(local, CAPTIONS))
    assert found.terms["CLIPScore"].tolist() == pytest.approx((100 * cosines).clamp(min=0).tolist(), abs=1e-3)
    assert (cosines < 0).any() or (cosines > 0).all()
    meter = Meter(clip=metric)
    for start in range(0, 9, 4):
        meter.update(list(pictures[start : start + 4]), CAPTIONS[start : start + 4])
    assert float(meter.compute()["clip"]) == pytest.approx(float(found.terms["CLIPScore"].double().mean()), abs=1e-3)


def test_clip_score_compares_images_with_images_and_captions_with_captions(local):
    metric = clip_score(*local)
    assert float(metric(images(1), images(1))) == pytest.approx(100, abs=1e-3)
    cosines = cosine_similarity(text_features(local, ["a cat"]), text_features(local, ["red mat"]))
    assert float(metric(["a cat"], ["red mat"])) == pytest.approx(max(100 * float(cosines), 0), abs=1e-3)


def test_long_captions_are_cut(local):
    cut = float(clip_score(*local)(images(2, 1), ["a dog " * 40]))
    assert cut == pytest.approx(float(clip_score(*local)(images(2, 1), ["a dog " * 20])), abs=1e-4)


def test_clip_image_quality_is_its_formula(local):
    pictures, prompts = images(3), {"quality": ("Good photo.", "Bad photo."), "cat": ("a cat", "a dog")}
    meter = Meter(**clip_image_quality(*local, prompts=prompts))
    meter.update(pictures)
    features = nn.functional.normalize(image_features(local, pictures), dim=1)
    for name, pair in prompts.items():
        anchors = nn.functional.normalize(text_features(local, pair), dim=1)
        expected = (100 * features @ anchors.T).softmax(1)[:, 0].double().mean()
        assert float(meter.compute()[name]) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.parametrize("prompts", [{}, {"quality": ("one",)}, {"quality": "ab"}, {"quality": (1, 2)}])
def test_wrong_prompts_raise(local, prompts):
    with pytest.raises(ConfigError, match="prompts: got"):
        clip_image_quality(*local, prompts=prompts)


def test_clip_score_in_an_evaluation_of_captions(local):
    pictures = images(4, 6)
    data = torch.utils.data.DataLoader([(pictures[k], CAPTIONS[k]) for k in range(6)], batch_size=4)
    report = assay.evaluate(lambda x: x, data, {"clip": clip_score(*local)}, device="cpu")
    value = report.sections[0].values[0].value
    assert value == pytest.approx(float(clip_score(*local)(pictures, CAPTIONS[:6])), rel=1e-5)
    text = report.to_text()
    assert "(3, 20, 24)" in text
    assert "red dog" in text


class Perceptual(nn.Module):
    """The formula of LPIPS with random features: unit length over channels, weighted squares, mean over places."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleList([nn.Conv2d(3, 4, 3), nn.Conv2d(4, 8, 3, stride=2)])
        self.weights = nn.ParameterList([torch.rand(1, 4, 1, 1), torch.rand(1, 8, 1, 1)])

    def forward(self, preds, target):
        total = 0
        for layer, weight in zip(self.layers, self.weights, strict=True):
            preds, target = layer(preds).relu(), layer(target).relu()
            unit = [x / (x.norm(dim=1, keepdim=True) + 1e-10) for x in (preds, target)]
            total = total + ((unit[0] - unit[1]).square() * weight).sum(1, keepdim=True).mean((2, 3), keepdim=True)
        return total


@pytest.mark.parametrize("normalize", [False, True])
def test_lpips_is_the_mean_of_what_the_network_gives(normalize):
    preds, target = (images(k).float() / 255 for k in (5, 6))
    network = Perceptual()
    with torch.no_grad():
        expected = network(2 * preds - 1, 2 * target - 1).double().mean()
    given = (preds, target) if normalize else (2 * preds - 1, 2 * target - 1)
    assert float(lpips(network, normalize=normalize)(*given)) == pytest.approx(float(expected), rel=1e-6)


def test_lpips_of_other_values_raises():
    preds, target = images(7).float(), images(8).float()
    meter = Meter(lpips=lpips(Perceptual()))
    meter.update(preds, target)
    with pytest.raises(InvalidValuesError, match="9 of the samples"):
        meter.compute()
    with pytest.raises(ShapeError, match="gives: got shape"):
        lpips(nn.PairwiseDistance())(preds, target)
