"""The weights of a model in safetensors files, read one at a time: a folder as Hugging Face writes it, or a file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from assay.errors import ConfigError, StateError, describe
from assay.quantize.files.container import DTYPES
from assay.quantize.files.description import KEY
from assay.quantize.files.fileset import indexed_files

FILE = "model.safetensors"
INDEX = "model.safetensors.index.json"
CONFIG = "config.json"
WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf", ".onnx", ".ot")
EMBEDDINGS = re.compile(r"embed|(^|[._])(emb|wte|wpe|tok|pos)([._]|$)|position", re.IGNORECASE)
HANDLE_BYTES = 16 << 20  # read through one mapping of a file, before its pages are given back


@dataclass(frozen=True)
class Stored:
    """One tensor of the source."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    file: Path

    @property
    def nbytes(self) -> int:
        """The bytes it takes."""
        return int(torch.Size(self.shape).numel()) * self.dtype.itemsize


class TensorSource:
    """The tensors of a model that need not fit into memory.

    Args:
        path: a folder with ``model.safetensors``, or with shards and their index; or one safetensors file.

    Raises:
        ConfigError: there is no such model, or it is quantized already.
        StateError: a file is cut short, missing, or does not hold what the index says.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.folder = self.path if self.path.is_dir() else None
        files, index = _files(self.path)
        self.config = config_of(self.folder)
        self.tensors = {stored.name: stored for file in files for stored in _tensors_of(file)}
        for name, file in index.items():
            if name not in self.tensors or self.tensors[name].file != file:
                got, do = f"{name} in {file.name}, where it is not", "Copy all files of one model again"
                raise StateError(describe(str(self.path / INDEX), got, "the file of each tensor", do))
        if not self.tensors:
            raise ConfigError(describe(str(self.path), "no tensors", "those of a model", "Check the path"))
        self._handle: Any = None
        self._file: Path | None = None
        self._left = 0

    @property
    def nbytes(self) -> int:
        """The bytes of all tensors."""
        return sum(stored.nbytes for stored in self.tensors.values())

    def read(self, name: str) -> Tensor:
        """One tensor, on the CPU. Its memory is given back with it.

        A mapping of a file keeps the pages that were read, so that the file is opened anew every now and then.
        """
        stored = self.tensors[name]
        if self._file != stored.file or self._left <= 0:
            self._handle, self._file, self._left = None, stored.file, HANDLE_BYTES
            self._handle = _opened(stored.file)
        self._left -= stored.nbytes
        try:
            return self._handle.get_tensor(name)  # type: ignore[no-any-return]
        except SafetensorError as error:
            got = f"no tensor {name!r} any more ({error})"
            raise StateError(describe(str(stored.file), got, "the file as it was", "Leave it as it is")) from error

    def others(self) -> list[Path]:
        """The files of the folder that are no weights: configuration, tokenizer, licence."""
        if self.folder is None:
            return []
        result = (path for path in sorted(self.folder.iterdir()) if path.is_file() and not path.name.startswith("."))
        return [path for path in result if path.suffix not in WEIGHTS and not path.name.endswith(".index.json")]


def _files(path: Path) -> tuple[list[Path], dict[str, Path]]:
    """The files, and the file of each tensor where there is an index."""
    if path.is_file():
        return [path], {}
    if not path.is_dir():
        expected = f"a folder with {FILE}, or a safetensors file"
        raise ConfigError(describe("source", f"{path}, which is not there", expected, "Check the path"))
    if (path / INDEX).is_file():
        index = indexed_files(path / INDEX)
        return sorted(set(index.values())), index
    if (path / FILE).is_file():
        return [path / FILE], {}
    there = ", ".join(sorted(each.name for each in path.iterdir() if each.suffix in WEIGHTS)[:3]) or "no weights"
    do = "Save it with save_pretrained(..., safe_serialization=True), or name one safetensors file"
    raise ConfigError(describe("source", f"{path} with {there}", f"{FILE} or {INDEX}", do))


def _tensors_of(file: Path) -> Iterator[Stored]:
    handle = _opened(file)
    if KEY in (handle.metadata() or {}):
        raise ConfigError(describe(str(file), "a quantized model", "one of floats", "Load it with assay.quantize.load"))
    for name in sorted(handle.keys(), key=_in_order):
        piece = handle.get_slice(name)
        dtype = DTYPES.get(piece.get_dtype())
        if dtype is None:
            got = f"{name} of dtype {piece.get_dtype()}"
            raise ConfigError(describe(str(file), got, f"one of {', '.join(DTYPES)}", "Convert the model before"))
        yield Stored(name, dtype, tuple(piece.get_shape()), file)


def _in_order(name: str) -> list[tuple[int, str]]:
    """Layer 2 before layer 10, and the same order in every run."""
    return [(int(part) if part.isdigit() else -1, part) for part in name.split(".")]


def _opened(file: Path) -> Any:
    try:
        return safe_open(file, framework="pt")
    except (SafetensorError, OSError) as error:
        got = f"no whole safetensors file ({error})"
        raise StateError(describe(str(file), got, "one that can be read", "Copy it again")) from error


def config_of(folder: Path | None) -> dict[str, Any]:
    """What ``config.json`` says, or an empty one.

    Raises:
        ConfigError: it is that of a quantized model.
        StateError: it cannot be read.
    """
    if folder is None or not (folder / CONFIG).is_file():
        return {}
    try:
        header = json.loads((folder / CONFIG).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise StateError(describe(str(folder / CONFIG), f"no JSON ({error})", "JSON", "Copy it again")) from error
    if not isinstance(header, dict):
        raise StateError(describe(str(folder / CONFIG), type(header).__name__, "an object", "Copy it again"))
    config = header.get("quantization_config")
    if method := config.get("quant_method") if isinstance(config, dict) else config:
        got = f"a model that is quantized already ({method})"
        raise ConfigError(describe(str(folder), got, "one of floats", "Name the model that it was made from"))
    return header


def from_names(tensors: Iterable[Stored]) -> nn.Module:
    """Modules that have tensors of these names: what is 2-D and named ``weight`` is linear or an embedding, by name."""
    root = nn.Module()
    by_name = {stored.name: stored for stored in tensors}
    for stored in by_name.values():
        *path, last = stored.name.split(".")
        if last == "weight" and len(stored.shape) == 2 and stored.dtype.is_floating_point and path:
            (rows, width), dtype, is_embedding = stored.shape, stored.dtype, EMBEDDINGS.search(".".join(path))
            with torch.device("meta"):
                layer = (
                    nn.Embedding(rows, width, dtype=dtype)
                    if is_embedding
                    else nn.Linear(width, rows, False, dtype=dtype)
                )
            _reach(root, path[:-1])._modules[path[-1]] = layer
    for stored in by_name.values():
        *path, last = stored.name.split(".")
        parent = _reach(root, path)
        if parent._parameters.get(last) is None:
            parameter = nn.Parameter(torch.empty(stored.shape, dtype=stored.dtype, device="meta"), requires_grad=False)
            parent._parameters[last] = parameter
    return root


def _reach(root: nn.Module, path: Iterable[str]) -> nn.Module:
    """The module at a path; those on the way are made. Past ``add_module``, which refuses names such as ``type``."""
    for name in path:
        if name not in root._modules:
            root._modules[name] = nn.Module()
        root = root._modules[name]  # type: ignore[assignment]
    return root
