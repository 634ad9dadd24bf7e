"""`calibrate`: what goes into the layers of a language model on a text, for rounding by GPTQ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from assay.language.causal import positions_of
from assay.language.scoring import BATCH_SIZE, perplexity
from assay.language.tokens import Tokenizer, Tokens, tokens_of
from assay.language.windows import sizes
from assay.quantize.rounding import Calibration


def calibrate(
    model: nn.Module,
    data: str | Tensor | Sequence[int] | Tokens,
    names: Iterable[str] | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    window: int | None = None,
    device: str | torch.device = "auto",
    batch_size: int = BATCH_SIZE,
    progress: bool | None = None,
) -> Calibration:
    """Run a language model on a text, and collect what goes into its linear layers.

    The text goes through the model in windows beside each other, of which the last ends with the text; 128 are usual.
    Of each layer `K²` numbers in float32 are kept, for rows of `K` weights.

    Args:
        model: gives logits `(B, T, V)` for token ids `(B, T)`.
        data: a text, or its token ids; other ones than those on which the result is measured.
        names: of the linear layers; by default all of them.
        tokenizer: makes tokens of a text; bytes by default.
        window: how many tokens the model is given at once; by default what it can hold, at most 1,024.
        device: where to run; as in `assay.evaluate`.
        batch_size: windows at once.
        progress: draw a bar; None: where there is a terminal.

    Returns:
        What `Plan.apply(model, calibration=...)` takes where the method is `"gptq"`.

    Raises:
        ConfigError: the model has no such layer, fewer than two tokens, or a window above what the model can hold.

    Example:
        >>> model = nn.Sequential(nn.Embedding(256, 32), nn.Linear(32, 256))
        >>> calibrate(model, "abracadabra", device="cpu").rows
        {'1': 10}

    Source: Frantar et al., GPTQ, 2023, section 5: 128 windows of 2,048 tokens.
    """
    window, _ = sizes(window, None, positions_of(model))
    tokens = tokens_of(data, tokenizer)  # without text the model does not run on the worst windows once more
    how = {"device": device, "batch_size": batch_size, "progress": progress}
    with Calibration(model, names) as calibration:
        perplexity(model, tokens, window=window, stride=window, confidence_level=None, title="Calibration", **how)  # type: ignore[arg-type]
    return calibration
