"""How the data of an analysis are read, and how outputs are compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import torch

from assay.evaluation.data.batch import Selector
from assay.language import Tokenizer
from assay.language.windows import IGNORED

Outputs: TypeAlias = Literal["logits", "probabilities", "values"]


@dataclass(frozen=True)
class DataSpec:
    """How data are read and outputs compared; everything but the models and the data.

    Attributes:
        outputs: what the models give: "logits", "probabilities", or "values" for numbers.
        class_dim: where the classes are in it.
        ignore_index: predictions whose target is this are left out.
        inputs: how a batch becomes what the model takes; as in `assay.evaluate`, and so are the next two.
        target: how a batch becomes the target.
        preds: how outputs become predictions.
        tokenizer: makes tokens of a text; bytes by default.
        window: of a text, how many tokens at once.
        stride: of a text, how far apart windows begin.
        device: where to run.
        batch_size: of data without a loader; 64 samples, or 8 windows of a text, by default.
        precision: "bfloat16" or "float16" for autocast.
        progress: draw a bar; None: where there is a terminal.
    """

    outputs: Outputs = "logits"
    class_dim: int = -1
    ignore_index: int = IGNORED
    inputs: Selector = None
    target: Selector = None
    preds: Selector = None
    tokenizer: Tokenizer | None = None
    window: int | None = None
    stride: int | None = None
    device: str | torch.device = "auto"
    batch_size: int | None = None
    precision: str | None = None
    progress: bool | None = None
