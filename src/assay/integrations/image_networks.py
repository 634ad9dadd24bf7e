"""CLIPScore, CLIP-IQA and LPIPS with networks that the caller has loaded; nothing is downloaded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.metrics import PerSample

QUALITY: Mapping[str, tuple[str, str]] = MappingProxyType({"quality": ("Good photo.", "Bad photo.")})


def clip_score(model: nn.Module, processor: Any, name: str = "CLIPScore") -> PerSample:
    """CLIPScore: how well a caption describes an image.

    `max(100 cos(E(preds), E(target)), 0)` for each pair, with the embeddings of a CLIP model.

    Shapes: `preds` and `target` are lists of images, tensors of shape `(C, H, W)`, or of captions, strings; images also
    as one tensor `(N, C, H, W)`. Values of images are as the processor takes them, mostly 0 to 255.

    Args:
        model: a CLIP model of `transformers`, such as `CLIPModel.from_pretrained(folder)`.
        processor: its processor, which prepares images and captions; captions that are too long are cut.
        name: the name of the metric in reports and files: name the model.

    Returns:
        The metric.

    Source: Hessel et al., CLIPScore, arXiv:2104.08718, with 100 instead of 2.5.
    """
    return PerSample(_ClipScore(model, processor), name, takes="images and captions", higher_is_better=True)


def clip_image_quality(
    model: nn.Module,
    processor: Any,
    name: str = "CLIP-IQA",
    *,
    prompts: Mapping[str, tuple[str, str]] = QUALITY,
) -> dict[str, PerSample]:
    """CLIP-IQA: how probable it is that an image fits the first of two prompts, and not the second.

    The softmax over 100 times the cosines between the embedding of the image and those of the prompts.

    Shapes: `preds` are images `(N, C, H, W)` with values as the processor takes them, mostly 0 to 255; no target.

    Args:
        model: a CLIP model of `transformers`.
        processor: its processor.
        name: the name of the metrics in reports and files: name the model.
        prompts: two prompts by name, as in `{"noise": ("Clean photo.", "Noisy photo.")}`.

    Returns:
        A metric for each pair of prompts, for one meter, which runs the model once a batch.

    Raises:
        ConfigError: no prompts, or not two strings under a name.

    Source: Wang et al., Exploring CLIP for Assessing the Look and Feel of Images, arXiv:2207.12396.
    """
    pairs = {key: tuple(pair) if not isinstance(pair, str) else (pair,) for key, pair in prompts.items()}
    wrong = [key for key, pair in pairs.items() if len(pair) != 2 or not all(isinstance(each, str) for each in pair)]
    if wrong or not pairs:
        got = f"{prompts[wrong[0]]!r} for {wrong[0]!r}" if wrong else "none"
        do = 'Pass prompts={"quality": ("Good photo.", "Bad photo.")}'
        raise ConfigError(describe("prompts", got, "two strings under each name", do))
    network = _ClipQuality(model, processor, {key: (pair[0], pair[1]) for key, pair in pairs.items()})
    options = {"uses_target": False, "higher_is_better": True}
    return PerSample.each(network, name, numbers=tuple(pairs), **options)


def lpips(network: nn.Module, name: str = "LPIPS", *, normalize: bool = False) -> PerSample:
    """LPIPS: how different two images look to a network.

    Shapes: `preds` and `target` are images `(N, 3, H, W)` with values from -1 to 1, or from 0 to 1 with `normalize`. An
    image with other values has no number: `compute` raises, and says how many there are.

    Args:
        network: called as `network(preds, target)` with values from -1 to 1; gives one number for each pair of images.
            `lpips.LPIPS(net="alex")` of the package lpips is one, or any other.
        name: the name of the metric in reports and files: name the network, as in "LPIPS alex".
        normalize: images have values from 0 to 1.

    Returns:
        The metric.

    Source: Zhang et al., The Unreasonable Effectiveness of Deep Features as a Perceptual Metric, arXiv:1801.03924.
    """
    return PerSample(_Lpips(network, normalize), name, higher_is_better=False)


class _Clip(nn.Module):
    """A CLIP model with its processor."""

    def __init__(self, model: nn.Module, processor: Any) -> None:
        super().__init__()
        self.model: Any = model
        self.processor = processor

    def embedded(self, samples: Sequence[Any]) -> Tensor:
        """The embeddings of images or captions, of length 1."""
        device = next(self.model.parameters()).device
        if all(isinstance(each, str) for each in samples):
            text = getattr(self.model.config, "text_config", self.model.config)
            longest = getattr(text, "max_position_embeddings", None)
            inputs = self.processor(
                text=list(samples), return_tensors="pt", padding=True, truncation=True, max_length=longest
            )
            features = self.model.get_text_features(
                input_ids=inputs["input_ids"].to(device), attention_mask=inputs["attention_mask"].to(device)
            )
        else:
            inputs = self.processor(images=[_on_cpu(each) for each in samples], return_tensors="pt")
            features = self.model.get_image_features(pixel_values=inputs["pixel_values"].to(device))
        tensor = features if isinstance(features, Tensor) else features.pooler_output  # since transformers 5
        return nn.functional.normalize(tensor.float(), dim=-1)


def _on_cpu(image: Any) -> Any:
    """An image on the CPU, where processors work."""
    return to_host(image) if isinstance(image, Tensor) else image


class _ClipScore(_Clip):
    def forward(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        return (100 * (self.embedded(preds) * self.embedded(target)).sum(1)).clamp(min=0)


class _ClipQuality(_Clip):
    def __init__(self, model: nn.Module, processor: Any, prompts: Mapping[str, tuple[str, str]]) -> None:
        super().__init__(model, processor)
        self.prompts = dict(prompts)

    def forward(self, preds: Tensor) -> dict[str, Tensor]:
        anchors = self.embedded([prompt for pair in self.prompts.values() for prompt in pair])
        cosines = self.embedded(list(preds)) @ anchors.T
        shares = (100 * cosines).view(len(preds), -1, 2).softmax(-1)[..., 0]
        return dict(zip(self.prompts, shares.unbind(1), strict=True))


class _Lpips(nn.Module):
    def __init__(self, network: nn.Module, normalize: bool) -> None:
        super().__init__()
        self.network, self.normalize = network, normalize

    def forward(self, preds: Tensor, target: Tensor) -> Tensor:
        if self.normalize:
            preds, target = 2 * preds - 1, 2 * target - 1
        numbers: Tensor = self.network(preds, target)
        valid = torch.stack([(image.abs() <= 1).flatten(1).all(1) for image in (preds, target)]).all(0)
        return numbers.masked_fill(~valid.view(-1, *[1] * (numbers.ndim - 1)), math.nan)
