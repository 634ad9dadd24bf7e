"""Columns of texts as the tokens that a model takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.errors import ConfigError, describe


class TokenColumns:
    """Tokens of one text or of a pair of texts a sample, padded to the longest of each batch.

    Args:
        tokenizer: as transformers has them.
        longest: how many tokens the model takes at most; None for any number.
        texts: one or two columns.

    Attributes:
        names: the parts that the model gets.
    """

    def __init__(self, tokenizer: Any, longest: int | None, texts: Sequence[list[str]]) -> None:
        if len(texts) > 2:
            raise ConfigError(describe("text", f"{len(texts)} columns", "one or two", "Join them beforehand"))
        self._tokenizer, self.longest, self._texts = tokenizer, longest, texts
        self.names = tuple(tokenizer.model_input_names)

    def __len__(self) -> int:
        return len(self._texts[0])

    def rows(self, index: list[int]) -> dict[str, Any]:
        """The tokens of some rows, by name; each of shape (len(index), longest)."""
        columns = [[column[k] for k in index] for column in self._texts]
        tokens = self._tokenizer(
            *columns, padding=True, truncation=self.longest is not None, max_length=self.longest, return_tensors="pt"
        )
        return {name: tokens[name] for name in self.names if name in tokens}

    def note(self, names: Sequence[str]) -> str:
        """A line for the report."""
        cut = "" if self.longest is None else f", cut to {self.longest:,} tokens where they are longer"
        return f"Texts of {' and '.join(names)} through {type(self._tokenizer).__name__}{cut}."
