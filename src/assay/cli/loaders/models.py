"""MODEL: a function that makes one, a program, TorchScript, weights with a factory, a Hugging Face folder, identity."""

from __future__ import annotations

import logging
import os
import pickle
import re
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay._atomic import reading
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.program_strings import UnsafeError
from assay.cli.loaders.python_objects import call_factory, construct_module, import_object, see_working_folder
from assay.cli.loaders.safe_program import screen
from assay.cli.options.base import ModelOptions
from assay.data.arrays import check_archive
from assay.errors import ConfigError, StateError, describe
from assay.evaluation.model.estimators import is_estimator
from assay.evaluation.model.exported_models import as_model

_PICKLE = b"\x80"  # how pickles begin
IDENTITY = "identity"
FILES = (".pt", ".pth", ".pt2", ".ts", ".bin", ".ckpt", ".safetensors", ".gguf")
_ALLOW = "or add --allow-code if you would run code from whoever made the file"


def model_of(options: ModelOptions, named: str = "") -> Model:
    """The model that the options of a command name, or another one that is opened like it."""
    see_working_folder()
    more = {"factory": options.model_factory, "allow_code": options.allow_code, "seed": options.seed}
    return open_model(named or options.model, **more)  # type: ignore[arg-type]


def open_model(named: str, *, factory: str = "", allow_code: bool = False, seed: int = 0) -> Model:
    """The model that was named.

    The content of a file says what it is. Nothing in it is run unless code is allowed: no pickled objects, no
    TorchScript and no compiled code, and of an exported program only operators.

    Args:
        named: ``package.module:factory``, a file, a folder, or ``identity``, whose predictions are its inputs.
        factory: ``package.module:factory`` of the model that weights are for.
        allow_code: whether files may run code.
        seed: of random numbers, so that all processes make the same model.
    """
    if named == IDENTITY:
        return Model(named, "the predictions are in the data", nn.Identity())
    path = Path(named)
    if path.is_dir() or path.suffix == ".safetensors":
        from assay.cli.loaders.quantized_models import open_quantized
        from assay.quantize.files.file import is_quantized

        if is_quantized(path):
            return open_quantized(path, factory, seed)
    if path.is_dir():
        from assay.cli.loaders.huggingface import open_folder

        return open_folder(path, allow_code)
    if path.suffix == ".gguf" and path.is_file():
        from assay.cli.loaders.huggingface import open_gguf

        return open_gguf(path)
    if path.suffix == ".py":
        do = f"Name the function in it that makes the model, as in {path.stem}:net"
        raise ConfigError(describe("MODEL", f"{named}, a Python file", "package.module:function", do))
    if path.is_file():
        what, model = _from_file(path, factory, allow_code, seed)
        return Model(path.name, what, model)
    if path.suffix in FILES or os.sep in named.partition(":")[0]:
        raise ConfigError(
            describe("MODEL", f"{named}, which does not exist", "an existing file or folder", "Check the path")
        )
    return Model(named.rpartition(":")[2], named, _from_python(named, seed))


def _from_python(named: str, seed: int) -> Callable[..., Any]:
    value = import_object(named, "MODEL")
    is_factory = not isinstance(value, nn.Module | torch.export.ExportedProgram) and callable(value)
    built = call_factory(value, named, seed) if is_factory else value
    if is_estimator(built):
        return built  # type: ignore[no-any-return]
    if not callable(built):
        expected = "a module, or a function that makes one"
        raise ConfigError(describe(named, type(built).__name__, expected, "Name that instead"))
    return as_model(built)  # type: ignore[no-any-return]


def _from_file(path: Path, factory: str, allow_code: bool, seed: int) -> tuple[str, nn.Module]:
    if path.suffix == ".safetensors":
        return _filled(path, _safetensors, factory, seed)
    records = _records(path)
    if any(record.endswith(("archive_format", "serialized_exported_program.json")) for record in records):
        return "an exported program", _program(path, allow_code)
    if any("aotinductor/" in record for record in records):
        do = "Save the program itself with torch.export.save"
        raise ConfigError(describe(str(path), "a compiled package", "an exported program", do))
    if any(record.endswith("constants.pkl") for record in records):
        return "TorchScript", _script(path, allow_code)
    if path.suffix == ".pt2" or not (records or _is_pickle(path)):
        expected = "an exported program" if path.suffix == ".pt2" else "a model or weights that torch wrote"
        got = "a file that cannot be read (nothing that torch writes)"
        raise StateError(describe(str(path), got, expected, "Save it again"))
    content = _unpickled(path, allow_code)
    if isinstance(content, nn.Module):
        return "a module that was pickled whole", content
    return _filled(path, lambda _: _tensors(path, content), factory, seed)


def _records(path: Path) -> list[str]:
    """What a zip file holds, after its checksums were found to be right; nothing for any other file."""
    with reading(path, "a model or weights that torch wrote"):
        return check_archive(path)


def _is_pickle(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(1) == _PICKLE


def _program(path: Path, allow_code: bool) -> nn.Module:
    with reading(path, "an exported program of this torch"), warnings.catch_warnings(), _without_logs("torch.export"):
        warnings.simplefilter("ignore")  # torch's own, of files of older releases
        if allow_code:
            return as_model(torch.export.load(os.fspath(path)))  # type: ignore[no-any-return]
        with tempfile.TemporaryFile() as file:
            try:
                screen(path, file)
            except UnsafeError as error:
                do = f"Export the model with torch {torch.__version__} and save it with torch.export.save, {_ALLOW}"
                raise StateError(describe(str(path), str(error), "what torch.export.save writes", do)) from error
            return as_model(torch.export.load(file))  # type: ignore[no-any-return]


@contextmanager
def _without_logs(name: str) -> Iterator[None]:
    """What is logged before an error is raised tells a reader less than the error."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _script(path: Path, allow_code: bool) -> nn.Module:
    if not allow_code:  # it runs when it is loaded (__setstate__), and can write files (aten::save, aten::from_file)
        do = f"Save the model with torch.export.save, {_ALLOW}"
        raise StateError(describe(str(path), "TorchScript, which is a program", "data, not a program", do))
    with reading(path, "TorchScript"), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is deprecated, and files of it are there
        return as_model(torch.jit.load(os.fspath(path), map_location="cpu"))  # type: ignore[no-any-return, no-untyped-call]


def _unpickled(path: Path, allow_code: bool) -> Any:
    """What `torch.save` wrote; tensors only, unless code is allowed."""
    with reading(path, "weights that torch.save wrote"):
        try:
            return torch.load(path, map_location="cpu", weights_only=not allow_code)
        except pickle.UnpicklingError as error:
            named = re.search(r"GLOBAL ([\w.]+)", str(error))
            if not named:
                raise
            got = f"pickled objects ({named[1]}), which run code when they are read"
            do = f"Save model.state_dict(), mostly as .safetensors, and name its --model-factory; {_ALLOW}"
            raise StateError(describe(str(path), got, "tensors by name; whole models are not unpickled", do)) from error


def _tensors(path: Path, content: Any) -> dict[str, Any]:
    for key in ("state_dict", "model", "model_state_dict"):
        if isinstance(content, dict) and isinstance(content.get(key), dict):
            content = content[key]
    if not isinstance(content, dict):
        raise StateError(describe(str(path), type(content).__name__, "tensors by name", "Save model.state_dict()"))
    return content


def _safetensors(path: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    with reading(path, "safetensors"):
        return load_file(path)


def _filled(path: Path, read: Callable[[Path], dict[str, Any]], factory: str, seed: int) -> tuple[str, nn.Module]:
    """A model from a factory with the weights of a file."""
    if not factory:
        do = "Name the function that makes the model with --model-factory package.module:function"
        raise ConfigError(describe("MODEL", f"weights in {path}", "a model to load them into", do))
    net = construct_module(factory, seed)
    weights = read(path)
    try:
        net.load_state_dict(weights)
    except (RuntimeError, TypeError, AttributeError) as error:
        got = " ".join(str(error).split())
        do = f"Name the factory of the model that {path.name} was saved from"
        raise ConfigError(describe(str(path), got, f"the weights of {factory}", do)) from error
    return f"weights for {factory}", net
