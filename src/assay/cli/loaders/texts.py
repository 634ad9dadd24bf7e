"""Files of text, and the tokenizer in the folder of a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from assay.cli.loaders.named_model import Model
from assay.errors import ConfigError, StateError, describe
from assay.huggingface import open_tokenizer, transformers
from assay.language import Tokenizer


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


def text_tokenizer(model: Model) -> tuple[Any, int | None]:
    """The tokenizer of transformers in a model's folder, and how many tokens the model takes at most."""
    tokenizer = _tokenizer(model)
    return tokenizer, _longest(tokenizer, model)


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
