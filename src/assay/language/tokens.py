"""Text as tokens: what a tokenizer must do, the one that is built in (bytes), and how many bytes tokens stand for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from assay.errors import ConfigError, DtypeError, ShapeError, describe


class Tokenizer(Protocol):
    """What turns text into tokens and back; no token is lost or joined with those of another call."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without a token for its beginning or its end."""

    def decode(self, ids: Sequence[int]) -> str:
        """The text of tokens."""

    @property
    def start(self) -> tuple[int, ...]:
        """The tokens that stand before every text; mostly one or none."""

    @property
    def unknown(self) -> int | None:
        """The token that stands for what the vocabulary lacks; None where it lacks nothing."""

    @property
    def stop(self) -> int | None:
        """The token after which a text ends, or None."""


class ByteTokenizer:
    """One token for each byte of UTF-8: a vocabulary of 256, for every text.

    Example:
        >>> ByteTokenizer().encode("né"), ByteTokenizer().decode([110, 195, 169])
        ([110, 195, 169], 'né')
    """

    start: tuple[int, ...] = ()
    unknown: int | None = None
    stop: int | None = None

    def encode(self, text: str) -> list[int]:
        return list(text.encode("utf-8", "surrogatepass"))

    def decode(self, ids: Sequence[int]) -> str:
        """The text of bytes; what is no UTF-8 is replaced, as a model may say anything."""
        outside = [each for each in ids if not 0 <= each < 256]
        if outside:
            do = "Pass the tokenizer that the model was trained with"
            raise ConfigError(describe("ids", f"token {outside[0]}", "bytes, 0 to 255", do))
        return bytes(ids).decode("utf-8", "replace")


@dataclass(frozen=True, eq=False)
class Tokens:
    """A text as a stream of tokens.

    Attributes:
        ids: int64 of shape `(L,)`.
        num_bytes: how many bytes of UTF-8 the tokens after the first stand for; None where that is not known. The first
            token is not predicted, as nothing stands before it.
        note: what a reader of a number of bits a byte must know.
    """

    ids: Tensor
    num_bytes: int | None = None
    note: str = ""

    def __len__(self) -> int:
        return len(self.ids)


def tokens_of(data: str | Tensor | Sequence[int] | Tokens, tokenizer: Tokenizer | None = None) -> Tokens:
    """Text, or tokens that were made of it, as a stream of tokens.

    Args:
        data: text, or a series of integers.
        tokenizer: makes tokens of text; bytes by default.

    Raises:
        ConfigError: fewer than two tokens: there is nothing to predict.
        ShapeError: tokens in more than one dimension.
        DtypeError: tokens that are no integers.

    Example:
        >>> tokens = tokens_of("né!")
        >>> tokens.ids.tolist(), tokens.num_bytes
        ([110, 195, 169, 33], 3)
    """
    if isinstance(data, Tokens):
        return _checked(data)
    if isinstance(data, str):
        return _checked(_of_text(data, tokenizer or ByteTokenizer()))
    try:
        ids = torch.as_tensor(data)
    except (TypeError, ValueError, RuntimeError) as error:
        do = "Read the file, or pass the ids in one series"
        raise ConfigError(describe("data", type(data).__name__, "text, or token ids", do)) from error
    if ids.ndim != 1:
        do = "Join the texts, or measure each on its own"
        raise ShapeError(describe("data", f"shape {tuple(ids.shape)}", "one series of token ids, shape (L,)", do))
    if len(ids) and (ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool):
        raise DtypeError(describe("data", ids.dtype, "token ids of an integer dtype", "Pass the ids"))
    if len(ids) and int(ids.min()) < 0:
        raise ConfigError(describe("data", f"token {int(ids.min())}", "token ids of 0 or more", "Pass the ids"))
    in_bytes = tokenizer is not None and isinstance(tokenizer, ByteTokenizer)
    return _checked(Tokens(ids.to(torch.int64), len(ids) - 1 if in_bytes else None))


def _of_text(text: str, tokenizer: Tokenizer) -> Tokens:
    start, result = tokenizer.start, tokenizer.encode(text)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not start and result:
        size -= len(result[:1]) if isinstance(tokenizer, ByteTokenizer) else len(tokenizer.decode(result[:1]).encode())
    lacking = 0 if tokenizer.unknown is None else result.count(tokenizer.unknown)
    note = f"{lacking:,} tokens stand for what the vocabulary lacks: bits a byte are too few." if lacking else ""
    return Tokens(torch.tensor([*start, *result], dtype=torch.int64, device="cpu"), size, note)


def _checked(tokens: Tokens) -> Tokens:
    if len(tokens) < 2:
        expected = "two or more: one is to predict the next"
        raise ConfigError(describe("data", f"{len(tokens)} tokens", expected, "Give a longer text"))
    return tokens
