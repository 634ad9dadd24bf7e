"""Token strips: the windows that a language model predicted worst, as text with the loss of each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch

from assay.devices.assign import assign
from assay.devices.modules import locations
from assay.devices.placement import to_host
from assay.evaluation.model.forward import ready
from assay.language.losses import TokenLosses
from assay.language.tokens import Tokenizer
from assay.language.windows import IGNORED, Windows
from assay.render.token_strips import TokenStrip
from assay.report import Samples

MOST_STRIPS, MOST_TOKENS = 3, 256
_INCOMPLETE = "\ufffd"
_MOST_JOINED = 8  # tokens of one character


def token_strips(
    losses: TokenLosses,
    windows: Windows,
    samples: Samples,
    columns: tuple[str, str],
    tokenizer: Tokenizer,
    device: str | torch.device,
) -> tuple[TokenStrip, ...]:
    """Of the windows with the largest mean loss the stretches that cost the most; the model runs on them once more.

    Args:
        losses: computes the loss of each token.
        windows: the text.
        samples: what each window contributed.
        columns: the names of the sum of losses and of the number of tokens among them.
        tokenizer: makes text of tokens.
        device: where to run.
    """
    total, count = (samples.column(name).astype(np.float64) for name in columns)
    means = np.where(np.isfinite(total), total, 0.0) / count
    worst = np.argsort(-means, kind="stable")[:MOST_STRIPS]
    assigned = assign(device, locations(losses)).device.value
    with ready(losses, assigned), torch.inference_mode():
        return tuple(
            _strip(losses, windows, int(samples.ids.values[k]), float(means[k]), tokenizer, assigned) for k in worst
        )


def _strip(
    losses: TokenLosses, windows: Windows, number: int, mean: float, tokenizer: Tokenizer, device: torch.device
) -> TokenStrip:
    window = windows[number]
    ids, labels = (window[name][None].to(device) for name in ("input_ids", "labels"))
    of_tokens = to_host(losses(ids, labels)[0]).double().numpy()
    scored = np.flatnonzero(window["labels"].numpy() != IGNORED)
    costs = of_tokens[scored]
    begin = _dearest(costs, MOST_TOKENS)
    costs = costs[begin : begin + MOST_TOKENS]
    tokens = window["labels"].numpy()[scored[begin : begin + MOST_TOKENS]].tolist()
    pieces, sums, at = [], [], 0
    for piece, size in pieces_of(tokens, tokenizer):
        pieces.append(piece)
        sums.append(round(float(costs[at : at + size].sum()), 3))
        at += size
    return TokenStrip(str(number), tuple(pieces), tuple(sums), mean)


def _dearest(costs: np.ndarray[tuple[int], np.dtype[np.float64]], size: int) -> int:
    """Where the stretch of so many tokens begins that costs the most."""
    if len(costs) <= size:
        return 0
    sums = np.concatenate([[0.0], np.cumsum(costs)])
    return int(np.argmax(sums[size:] - sums[:-size]))


def pieces_of(ids: Sequence[int], tokenizer: Tokenizer) -> Iterator[tuple[str, int]]:
    """Tokens as text with how many each piece took: those that are one character together are one piece.

    Example:
        >>> from assay.language.tokens import ByteTokenizer
        >>> list(pieces_of(ByteTokenizer().encode("né"), ByteTokenizer()))
        [('n', 1), ('é', 2)]
    """
    before: list[int] = []
    joined: list[int] = []
    for number, token in enumerate(ids, 1):
        joined.append(token)
        text = tokenizer.decode([*before, *joined])[len(tokenizer.decode(before)) :]
        if text.endswith(_INCOMPLETE) and len(joined) < _MOST_JOINED and number < len(ids):
            continue
        yield text, len(joined)
        before, joined = joined, []
