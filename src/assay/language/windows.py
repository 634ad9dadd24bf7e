"""Sliding windows: a long text in pieces that a model can hold, in which every token is predicted once."""

from __future__ import annotations

from torch import Tensor
from torch.utils.data import Dataset

from assay.errors import ConfigError, describe
from assay.language.tokens import Tokens

IGNORED = -100
"""The target of a token that only gives context; the number that Hugging Face's models use, too."""


class Windows(Dataset[dict[str, Tensor]]):
    """A text as samples: windows of `window` tokens that begin `stride` tokens apart.

    A window predicts those of its tokens that the one before did not: all but the first have at least
    `window - stride` tokens before the first that they predict. The last window ends with the text and begins earlier
    than a stride away where it must, so that all are of one length and none has less context than it could have.

    With `T = L - 1` tokens to predict, of which the very first token of the text is none, there are
    `1 + ceil((T - window) / stride)` windows, and one of T tokens where `T <= window`.

    Args:
        tokens: the text.
        window: how many tokens the model is given at once.
        stride: how many tokens further the next window begins; at most `window`.

    A sample is `{"input_ids": (W,), "labels": (W,)}`, int64; labels are the tokens after the inputs, and
    `IGNORED` where an earlier window predicts them.

    Attributes:
        content_digest: of all tokens; empty where nobody needs it.

    Raises:
        ConfigError: a stride that would leave tokens out, or sizes below 1.

    Example:
        >>> import torch
        >>> windows = Windows(Tokens(torch.arange(8)), window=4, stride=2)
        >>> [sample["labels"].tolist() for sample in windows]
        [[1, 2, 3, 4], [-100, -100, 5, 6], [-100, -100, -100, 7]]
    """

    def __init__(self, tokens: Tokens, window: int, stride: int) -> None:
        _check(window, stride)
        self.tokens, self.stride = tokens, stride
        self.scored = len(tokens) - 1
        self.window = min(window, self.scored)
        self._last = self.scored - self.window
        self.content_digest = ""

    def __len__(self) -> int:
        return 1 + -(-self._last // self.stride)

    def __getitem__(self, number: int) -> dict[str, Tensor]:
        begin, known = self.span(number)
        ids = self.tokens.ids[begin : begin + self.window + 1]
        labels = ids[1:].clone()
        labels[: known - begin] = IGNORED
        return {"input_ids": ids[:-1].clone(), "labels": labels}

    def span(self, number: int) -> tuple[int, int]:
        """Where a window begins, and how many tokens windows before it predict."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        begin = min(number * self.stride, self._last)
        return begin, 0 if not number else (number - 1) * self.stride + self.window


def _check(window: int, stride: int) -> None:
    for name, value in (("window", window), ("stride", stride)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            do = f"Leave {name} out to take what the model holds"
            raise ConfigError(describe(name, repr(value), "an integer above 0", do))
    if stride > window:
        got, do = f"{stride}, with a window of {window}", "Pass at most the window; half of it is usual"
        raise ConfigError(describe("stride", got, "a stride that leaves no token out", do))


def sizes(window: int | None, stride: int | None, positions: int | None, default: int = 1024) -> tuple[int, int]:
    """Window and stride as asked for, or as usual: what the model holds, at most `default`; and half of it.

    Args:
        window: how many tokens at once.
        stride: how far apart windows begin.
        positions: how many tokens the model can hold; None where that is not known.
        default: the largest window that is not asked for.

    Raises:
        ConfigError: more than the model can hold.

    Example:
        >>> sizes(None, None, 512), sizes(256, None, None)
        ((512, 256), (256, 128))
    """
    if window is None:
        window = min(default, positions or default)
    elif positions is not None and isinstance(window, int) and window > positions:
        do = f"Pass at most window={positions}"
        raise ConfigError(describe("window", window, f"what the model can hold, {positions} tokens", do))
    return window, max(1, window // 2) if stride is None else stride
