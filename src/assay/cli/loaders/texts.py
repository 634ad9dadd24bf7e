"""Columns of texts as the tokens that a model takes, by the tokenizer in its folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from assay.cli.loaders.named_model import Model
from assay.errors import ConfigError, StateError, describe
from assay.huggingface import open_tokenizer, transformers
from assay.language import Tokenizer


class TokenColumns:
    """Tokens of one text or of a pair of texts a sample, padded to the longest of each batch.

    Args:
        model: whose folder has the tokenizer.
        texts: one or two columns.

    Attributes:
        names: the parts that the model gets.
    """

    def __init__(self, model: Model, texts: Sequence[list[str]]) -> None:
        if model.folder is None:
            do = "Give a Hugging Face folder as MODEL, or name a data set with package.module:function"
            raise ConfigError(describe("--text", f"{model.what}", "a model with a tokenizer", do))
        if len(texts) > 2:
            raise ConfigError(describe("--text", f"{len(texts)} columns", "one or two", "Join them beforehand"))
        self._texts = texts
        self._tokenizer = _tokenizer(model)
        self.longest = _longest(self._tokenizer, model)
        self.names = tuple(self._tokenizer.model_input_names)

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


def read_text(path: Path, option: str) -> str:
    """A text as it stands in a file, with its line ends."""
    if not path.is_file():
        raise ConfigError(describe(option, f"{path}, which is no file", "a file with text", "Check the path"))
    try:
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise StateError(describe(str(path), f"bytes that are no UTF-8 ({error})", "text", "Convert it")) from error


def tokenizer_of(model: Model) -> Tokenizer | None:
    """The tokenizer in a model's folder; None for bytes."""
    return None if model.folder is None else open_tokenizer(model.folder)


def _tokenizer(model: Model) -> Any:
    package = transformers("tokenizers")
    try:
        tokenizer = package.AutoTokenizer.from_pretrained(model.folder, local_files_only=True, trust_remote_code=False)
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        do = "Save it beside the model with tokenizer.save_pretrained"
        raise StateError(describe(f"{model.folder}", f"no tokenizer ({reason})", "one", do)) from error
    if tokenizer.pad_token is None:
        do = "Set tokenizer.pad_token and save it again"
        raise StateError(describe(f"{model.folder}", "a tokenizer without a token to pad with", "one that pads", do))
    return tokenizer


def _longest(tokenizer: Any, model: Model) -> int | None:
    """How many tokens the model can take, where it says so."""
    config = getattr(model.model, "config", None)
    limits = [tokenizer.model_max_length, getattr(config, "max_position_embeddings", None)]
    known = [each for each in limits if isinstance(each, int) and each < 10**9]
    return min(known) if known else None
