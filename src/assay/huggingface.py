"""Models in local folders as Hugging Face writes them; nothing is downloaded and no code in them is run."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay.errors import (
    AssayError,
    ConfigError,
    InvalidValuesWarning,
    MissingDependencyError,
    StateError,
    describe,
    warn,
)
from assay.language.conversation import Message
from assay.language.tokens import Tokenizer
from assay.quantize.files.file import is_quantized, load_folder
from assay.quantize.files.transformers_registration import register_with_transformers
from assay.quantize.formats.foreign import has_tokenizer, is_foreign, load_foreign
from assay.render.text import first_names

CONFIG = "config.json"
_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json", "spiece.model")


class FolderTokenizer:
    """The tokenizer of a folder.

    Texts are made into tokens without special ones; if the tokenizer would put one before a text, it is `start`.

    Args:
        tokenizer: one of Hugging Face's.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        first = tokenizer("a").input_ids[:1]
        self.start: tuple[int, ...] = tuple(first) if first and first[0] == tokenizer.bos_token_id else ()
        self.unknown: int | None = tokenizer.unk_token_id
        self.stop: int | None = tokenizer.eos_token_id
        self.begin: int | None = tokenizer.bos_token_id
        self.chat_template = str(tokenizer.chat_template or "")

    def encode(self, text: str) -> list[int]:
        """The tokens of a text.

        Raises:
            ConfigError: the text has halves of characters, as Python reads bytes that are no UTF-8.
        """
        if any("\ud800" <= each <= "\udfff" for each in text):
            raise ConfigError(describe("text", "bytes that are no UTF-8", "characters", "Write the text in UTF-8"))
        # verbose: a text is longer than the model's window on purpose
        result = self._tokenizer(text, add_special_tokens=False, verbose=False).input_ids
        return [int(each) for each in result]

    def decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def chat_text(self, messages: list[Message], *, is_open: bool = False) -> str:
        """Messages as text by the chat template of the folder; the model continues it as `ChatTemplate` says.

        Raises:
            ConfigError: there is no template, or it does not take these messages.
        """
        try:
            how = {"add_generation_prompt": not is_open, "continue_final_message": is_open}
            return str(self._tokenizer.apply_chat_template(messages, tokenize=False, **how))
        except Exception as error:
            do = "Leave out a system message, or correct chat_template in tokenizer_config.json"
            raise ConfigError(describe("chat template", _short(error), "one that takes the messages", do)) from error


def is_model_folder(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a model as Hugging Face writes it."""
    return (Path(path) / CONFIG).is_file()


def open_model(path: str | os.PathLike[str], *, dtype: str = "auto") -> tuple[nn.Module, Tokenizer | None]:
    """Read a causal language model and its tokenizer from a local folder; its weights may be quantized.

    Args:
        path: a folder with `config.json`, weights as safetensors, and mostly a tokenizer: what `save_pretrained`,
            `assay quantize` or `assay.quantize.quantize_shards` wrote. Weights of GPTQ, AWQ, compressed-tensors and
            torchao, and those of a file that ends in `.gguf`, are read as the floats that they stand for.
        dtype: of the weights that are floats; "auto" as they are stored.

    Returns:
        The model, in evaluation mode on the CPU, and the tokenizer; None where the folder has none.

    Raises:
        ConfigError: no such folder, or it is not one of a causal language model.
        StateError: its files cannot be read.
        MissingDependencyError: without `assay[hf]`.
    """
    folder = Path(path)
    if is_gguf(folder):
        package = transformers()
        model, loaded = read_foreign(folder, package.AutoModelForCausalLM, dtype)
        _check_whole(folder, loaded)
        return model, _tokenizer(folder, package)
    if not folder.is_dir():
        do = "Check the path; models are not downloaded"
        raise ConfigError(describe("MODEL", f"{folder}, which is no folder", "a local folder with config.json", do))
    if not is_model_folder(folder):
        do = "Name the folder that save_pretrained wrote"
        raise ConfigError(describe("MODEL", f"{folder} without {CONFIG}", "a folder of Hugging Face's form", do))
    package = transformers()
    if is_quantized(folder):
        model = load_folder(folder)
        if dtype != "auto":
            floats = getattr(torch, dtype, None)
            if not isinstance(floats, torch.dtype):
                expected = 'a dtype such as "bfloat16", or "auto"'
                raise ConfigError(describe("dtype", repr(dtype), expected, "Pass one of them"))
            model.to(floats)
        return model, _tokenizer(folder, package)
    model, loaded = _loaded(folder, package.AutoModelForCausalLM, dtype)
    _check_whole(folder, loaded)
    model.eval()
    return model, _tokenizer(folder, package)


def _loaded(folder: Path, cls: Any, dtype: str) -> tuple[nn.Module, Any]:
    """The model of a folder, and what Transformers says of its loading."""
    if is_foreign(folder):
        return read_foreign(folder, cls, dtype)
    register_with_transformers()
    try:
        model, loaded = cls.from_pretrained(
            folder,
            local_files_only=True,
            trust_remote_code=False,
            dtype=dtype,
            use_safetensors=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # they are refused by name
        )
    except Exception as error:
        do = "Check that the folder holds a causal language model with all of its safetensors files"
        raise StateError(describe(str(folder), _short(error), "a model that can be read", do)) from error
    return model, loaded


def read_foreign(path: Path, cls: Any, dtype: str = "auto") -> tuple[nn.Module, Any]:
    """A model that another program quantized."""
    try:
        return load_foreign(path, cls, dtype=dtype)
    except AssayError:
        raise
    except Exception as error:
        do = "Check that it is whole, and that the package of its format is installed"
        raise StateError(describe(str(path), _short(error), "a model that can be read", do)) from error


def is_gguf(path: Path) -> bool:
    """Whether a path is a file of llama.cpp."""
    return path.suffix == ".gguf" and path.is_file()


def _check_whole(folder: Path, loaded: Any) -> None:
    """Raise where weights are missing: Hugging Face fills them with random numbers, and says so in a log only."""
    result = [each for kind in ("missing_keys", "mismatched_keys") for each in loaded.get(kind) or ()]
    lacking = [str(each[0] if isinstance(each, tuple) else each) for each in result]
    if lacking:
        got = f"no fitting weights for {first_names(sorted(lacking))}"
        do = "Check that all of its files are there, and that config.json belongs to them"
        raise StateError(describe(str(folder), got, "weights for the whole model", do))
    tell_unused(folder, loaded)


def tell_unused(folder: Path, loaded: Mapping[str, Any]) -> None:
    """Warn of weights that the model has no place for: then the folder may be one of another model."""
    if unused := sorted(map(str, loaded.get("unexpected_keys") or ())):
        got = f"weights that the model has no place for: {first_names(unused)}"
        do = "Correct config.json if it names another model than that of the weights"
        warn(describe(str(folder), got, "those of the model alone", do), InvalidValuesWarning)


def open_tokenizer(path: str | os.PathLike[str]) -> Tokenizer | None:
    """The tokenizer of a folder, or None.

    Raises:
        StateError: its files cannot be read.
        MissingDependencyError: without `assay[hf]`.
    """
    return _tokenizer(Path(path), transformers())


def _tokenizer(path: Path, package: Any) -> Tokenizer | None:
    """The tokenizer of a folder, or of a GGUF file: that in the file, else that beside it."""
    folder, more = (path.parent, {"gguf_file": path.name}) if is_gguf(path) else (path, {})
    has_own = bool(more) and has_tokenizer(path)
    if not has_own and not any((folder / name).is_file() for name in _TOKENIZERS):
        return None
    more = more if has_own else {}
    try:
        return FolderTokenizer(
            package.AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False, **more)
        )
    except Exception as error:
        expected = "a tokenizer that can be read"
        raise StateError(describe(str(path), _short(error), expected, "Save it again")) from error


def _short(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def transformers(purpose: str = "models in folders") -> Any:
    """The package, imported when it is needed; a MissingDependencyError says what for."""
    try:
        import transformers as package
    except ImportError as error:
        raise MissingDependencyError("transformers", extra="hf", purpose=purpose) from error
    return package
