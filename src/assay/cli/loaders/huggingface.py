"""A folder as Hugging Face's libraries write it: the model that its config names, with weights from safetensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from assay.cli.loaders.named_model import Model
from assay.errors import ConfigError, StateError, describe
from assay.huggingface import read_foreign, tell_unused, transformers
from assay.quantize.files.transformers_registration import register_with_transformers
from assay.quantize.formats.foreign import is_foreign, method_of
from assay.render.text import first_names


def open_folder(path: Path, allow_code: bool = False) -> Model:
    """The model in a local folder.

    The class is the one of transformers that `architectures` in config.json names. Code in the folder is never run, and
    nothing is downloaded.
    """
    name = _architecture(path)
    package = transformers(f"models in folders such as {path.name}")
    kind = getattr(package, name, None)
    if kind is None:
        got = f"{name}, which transformers {package.__version__} does not have"
        do = "Code in the folder is not run: write package.module:function that makes the model"
        raise ConfigError(describe(f"{path}/config.json", got, "a class of transformers", do))
    package.utils.logging.disable_progress_bar()
    register_with_transformers()
    if is_foreign(path):
        model, loaded = read_foreign(path, kind)
        _check(path, name, loaded)
        what = f"{name} of a folder, {method_of(path)} weights as floats"
        return Model(path.resolve().name, what, model, _classes(model.config), path)
    try:
        model, loaded = kind.from_pretrained(
            path, local_files_only=True, use_safetensors=None if allow_code else True, output_loading_info=True
        )
    except Exception as error:
        reason = " ".join(str(error).split())[:300]
        do = "Save the model with save_pretrained; pickled weights are read with --allow-code only"
        raise StateError(describe(str(path), reason, f"weights of {name} as safetensors", do)) from error
    _check(path, name, loaded)
    return Model(path.resolve().name, f"{name} of a folder", model, _classes(model.config), path)


def open_gguf(path: Path) -> Model:
    """The causal language model in a file of llama.cpp, with its weights as floats."""
    package = transformers(f"files such as {path.name}")
    package.utils.logging.disable_progress_bar()
    model, loaded = read_foreign(path, package.AutoModelForCausalLM)
    _check(path, type(model).__name__, loaded)
    return Model(path.name, f"{type(model).__name__} of a GGUF file, weights as floats", model, folder=path)


def _architecture(path: Path) -> str:
    file = path / "config.json"
    try:
        config = json.loads(file.read_text("utf-8"))
    except FileNotFoundError as error:
        do = "Name a folder that save_pretrained wrote, or a file"
        raise ConfigError(describe("MODEL", f"the folder {path} without config.json", "a model", do)) from error
    except (ValueError, RecursionError) as error:
        raise StateError(describe(str(file), f"no JSON ({error})", "a config", "Save the model again")) from error
    names = config.get("architectures") if isinstance(config, dict) else None
    if not isinstance(names, list) or not names or not isinstance(names[0], str):
        do = 'Say which class it is, as in "architectures": ["BertForSequenceClassification"]'
        raise ConfigError(describe(str(file), f"architectures {names!r}", "the name of a class", do))
    return names[0]


def _check(path: Path, name: str, loaded: dict[str, Any]) -> None:
    """transformers makes up weights that are missing; what is measured then is noise."""
    for what in ("missing_keys", "mismatched_keys"):
        keys = sorted(str(key) for key in loaded.get(what, ()))
        if keys:
            got = f"{what.replace('_keys', '')} weights {first_names(keys)}"
            do = "Save the whole model with save_pretrained, or correct architectures in config.json"
            raise StateError(describe(str(path), got, f"all weights of {name}", do))
    tell_unused(path, loaded)


def _classes(config: Any) -> tuple[str, ...]:
    """The names of the classes, unless they are those that transformers makes up (LABEL_0)."""
    names = getattr(config, "id2label", None) or {}
    listed = tuple(str(names[k]) for k in range(len(names)) if k in names)
    made_up = tuple(f"LABEL_{k}" for k in range(len(names)))
    return listed if len(listed) == len(names) and listed != made_up else ()
