"""Quantized models in files: safetensors in the canonical form, the same bytes for every device and processor.

What a kernel reads is never written. docs/quantized_files.md is the specification.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from assay.errors import ConfigError, MissingDependencyError, describe
from assay.quantize.files.container import TensorEntry
from assay.quantize.files.description import KEY, FileDescription, WeightDescription, tensors_of
from assay.quantize.files.fileset import SHARD_BYTES, SUFFIX, FileSet
from assay.quantize.files.meta_models import from_config
from assay.quantize.files.model_loader import ModelLoader
from assay.quantize.files.quantized_files import QuantizedFiles
from assay.quantize.files.transformers_registration import mark
from assay.quantize.layers import QUANTIZED
from assay.quantize.packed_weight import PackedWeight

PathLike: TypeAlias = "str | os.PathLike[str]"


@dataclass
class _Contents:
    """What is written: quantized weights, tensors that were skipped, and further names of both."""

    weights: dict[str, tuple[WeightDescription, PackedWeight]] = field(default_factory=dict)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)


def save(model: nn.Module | Mapping[str, PackedWeight], path: PathLike, *, shard_bytes: int = SHARD_BYTES) -> Path:
    """Write a quantized model: safetensors with a description and checksums.

    A single file is always the old one or the new one, never a part. Of several files each is whole, and all
    know which belong together, so that a mixture is refused when it is loaded.

    Args:
        model: a model with quantized layers, or quantized weights by name.
        path: a folder, which gets ``quantized.safetensors`` or shards with an index; or a file ``….safetensors``.
        shard_bytes: the most that one file of a folder may hold.

    Returns:
        The path.

    Raises:
        ConfigError: nothing in it is quantized, it holds what no safetensors file can, or the path cannot be written.
        StateError: the disk is full.

    Example:
        >>> import tempfile
        >>> from assay.quantize import QuantizedLinear, quantize_weight
        >>> model = nn.Sequential(QuantizedLinear(quantize_weight(torch.eye(4, 32), "int8")))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = save(model, f"{folder}/model.safetensors")
        ...     again = load(nn.Sequential(nn.Linear(32, 4, bias=False)), file)
        >>> again[0].integers.equal(model[0].integers)
        True
    """
    if type(shard_bytes) is not int or shard_bytes < 1:
        raise ConfigError(describe("shard_bytes", repr(shard_bytes), "a number of bytes", "Pass 5 * 10**9"))
    path = Path(path)
    if (path.suffix == SUFFIX and path.is_dir()) or (path.suffix != SUFFIX and path.is_file()):
        got = f"{path}, which is a {'folder' if path.is_dir() else 'file'}"
        raise ConfigError(describe("path", got, f"a folder, or a file that ends in {SUFFIX}", "Name another one"))
    contents = _of_model(model) if isinstance(model, nn.Module) else _of_integers(model)
    weights = {name: weight for name, (weight, _) in contents.weights.items()}
    groups = [weights[name].entries(name, integers.scales.dtype) for name, (_, integers) in contents.weights.items()]
    groups += [[TensorEntry.of(name, tensor)] for name, tensor in contents.tensors.items()]
    files = FileSet(path, groups, weights, contents.tied, shard_bytes, mark=f"{secrets.token_hex(4)}.part")
    try:
        files.reserve()
        for name, (_, integers) in contents.weights.items():
            for each, tensor in tensors_of(name, integers).items():
                files.put(each, tensor)
        for name, tensor in contents.tensors.items():
            files.put(name, tensor)
        files.finish()
    finally:
        files.discard()
    return path


def load(
    model: nn.Module, path: PathLike, *, strict: bool = True, device: str | torch.device | None = None
) -> nn.Module:
    """Load a quantized model into one of floats: its layers are replaced as the file says.

    Everything is read and checked first; after an error the model is as it was. Every tensor has the dtype of the file.

    Args:
        model: as it was made before it was quantized. Its parameters may be on the meta device; see
            :func:`assay.quantize.files.meta_models.meta_model`.
        path: what :func:`save` or :func:`assay.quantize.streaming.job.quantize_shards` wrote: the folder, or the file.
        strict: the file and the model must have the same tensors. Otherwise those that both have are loaded, with a
            warning that names the others.
        device: where to; None: where each tensor of the model is, and the CPU for those on the meta device.

    Returns:
        The model, changed in place.

    Raises:
        StateError: a file is cut short, changed, missing, of another version, or of another model.
        ConfigError: the model cannot take it.

    Warns:
        AssayWarning: with ``strict=False``, which tensors were not loaded.
    """
    if not isinstance(model, nn.Module):
        do = "Make the model, then load into it"  # type: ignore[unreachable]
        raise ConfigError(describe("model", type(model).__name__, "a torch.nn.Module", do))
    description, weights, unquantized = _read(path)
    ModelLoader(model, description, str(path), device).replacements(weights, unquantized, strict).apply()
    mark(model)
    return model


def load_folder(path: PathLike, *, device: str | torch.device | None = None) -> nn.Module:
    """The quantized model of a folder with ``config.json``, without ever making its weights in floats.

    Args:
        path: what :func:`assay.quantize.streaming.job.quantize_shards` wrote from a folder as Hugging Face writes it.
        device: where to; None: the CPU.

    Returns:
        The model, in evaluation mode.

    Raises:
        StateError: as :func:`load`.
        ConfigError: its configuration is none that Transformers can make a model of.
        MissingDependencyError: without Transformers.
    """
    description = describe_file(path)
    model = from_config(Path(path))
    if model is None:
        if find_spec("transformers") is None:
            raise MissingDependencyError("transformers", extra="hf", purpose="models in folders")
        got = f"a configuration of which no model can be made, for {len(description.weights)} quantized weights"
        do = "Make the model yourself, and load the folder into it"
        raise ConfigError(describe(str(path), got, "a config.json that the installed Transformers knows", do))
    return load(model, path, device=device).eval()


def load_packed_weights(path: PathLike) -> dict[str, PackedWeight]:
    """The quantized weights of a file or folder by their names, on the CPU.

    Raises:
        StateError: as :func:`load`.
    """
    return _read(path)[1]


def describe_file(path: PathLike) -> FileDescription:
    """What the files of a quantized model say of themselves; only their headers are read.

    Raises:
        StateError: as :func:`load`, but for the bytes of the tensors.
    """
    return QuantizedFiles(Path(path)).description


def is_quantized(path: PathLike) -> bool:
    """Whether assay wrote the quantized weights in a folder or a file; whether all of them are there is not checked."""
    result = sorted(Path(path).glob("quantized*.safetensors"))[:1] or [Path(path)]
    try:
        with safe_open(result[0], framework="pt") as handle:
            return KEY in (handle.metadata() or {})
    except (SafetensorError, OSError):
        return False


def _read(path: PathLike) -> tuple[FileDescription, dict[str, PackedWeight], dict[str, Tensor]]:
    """A quantized model, on the CPU, after its checksums were found to be right: its weights, and its other tensors."""
    files = QuantizedFiles(Path(path))
    weights = {name: files.weight(name) for name in files.description.weights}
    return files.description, weights, {name: files.tensor(name) for name in files.description.unquantized()}


def _of_integers(packed_weights: Mapping[str, PackedWeight]) -> _Contents:
    other = next((name for name, each in packed_weights.items() if not isinstance(each, PackedWeight)), None)
    if not packed_weights or other is not None:
        got = f"{type(packed_weights[other]).__name__} under {other!r}" if other is not None else "nothing"
        raise ConfigError(describe("model", got, "a module, or PackedWeight by name", "Quantize weights first"))
    contents = _Contents()
    for name, each in packed_weights.items():
        contents.weights[name] = WeightDescription("linear", each.scheme, each.shape, each.scales.dtype), each
    return contents


def _of_model(model: nn.Module) -> _Contents:
    """The state of a model, with what is shared stored once."""
    model = getattr(model, "_orig_mod", model)  # that of torch.compile
    contents, names = _Contents(), set()
    first: dict[object, str] = {}
    for name, layer in model.named_modules(remove_duplicate=False):
        if not isinstance(layer, QUANTIZED):
            continue
        weight, own = layer.weight, f"{name}.weight".removeprefix(".")
        names |= {f"{own}.{part}" for part in weight.state_dict()}
        if first.setdefault(weight, own) != own:
            contents.tied[own] = first[weight]
            continue
        contents.weights[own] = (WeightDescription.of(layer), weight.integers)
    if not contents.weights:
        do = "Apply a plan first, or save it with safetensors"
        raise ConfigError(describe("model", "no quantized layer", "at least one", do))
    for name, tensor in model.state_dict(keep_vars=True).items():
        if name in names:
            continue
        if not isinstance(tensor, Tensor) or type(tensor) not in (Tensor, nn.Parameter):
            do = "Turn it into a plain tensor; what get_extra_state gives cannot be saved"
            raise ConfigError(describe(name, f"a {type(tensor).__name__}", "a plain tensor", do))
        if tensor.is_meta or tensor.is_sparse:
            got = f"a {'meta' if tensor.is_meta else 'sparse'} tensor"
            raise ConfigError(describe(name, got, "a dense one with values", "Load the model first"))
        memory = (tensor.data_ptr(), tensor.device, tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and first.setdefault(memory, name) != name:
            contents.tied[name] = first[memory]
        else:
            contents.tensors[name] = tensor.detach()
    return contents
