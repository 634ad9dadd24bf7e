"""Models that another program quantized, read as the floats that their weights stand for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from assay.errors import AssayError, AssayWarning, ConfigError, StateError, describe, needing, warn
from assay.quantize.files.fileset import indexed_files
from assay.quantize.formats import read_awq, read_compressed_tensors, read_gptq
from assay.quantize.formats.foreign_format import Config, ForeignFormat
from assay.quantize.streaming.tensor_source import CONFIG, INDEX

FORMATS: Mapping[str, ForeignFormat] = {
    "gptq": read_gptq.FORMAT,
    "awq": read_awq.FORMAT,
    "compressed-tensors": read_compressed_tensors.FORMAT,
}
TORCHAO = "torchao"
GGUF = ".gguf"


def is_foreign(path: Path) -> bool:
    """Whether :func:`load_foreign` reads what lies there: a GGUF file, or a folder that another program quantized."""
    return path.suffix == GGUF or method_of(path) in (*FORMATS, TORCHAO)


def method_of(folder: Path) -> str:
    """The ``quant_method`` of a folder; empty for one of floats, and where there is no configuration."""
    try:
        config = json.loads((folder / CONFIG).read_text("utf-8"))["quantization_config"]
        return str(config["quant_method"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return ""


def load_foreign(path: Path, cls: Any, *, dtype: str = "auto") -> tuple[nn.Module, Mapping[str, Any]]:
    """A model that another program quantized, with its weights as floats: ``w`` in float32, rounded once to ``dtype``.

    GPTQ, AWQ and compressed-tensors are read without their packages; torchao and GGUF by theirs.

    Args:
        path: a folder, or a file that ends in ``.gguf``.
        cls: a class of Transformers with ``from_pretrained``.
        dtype: of the floats; ``"auto"`` as the configuration says, and float32 for GGUF.

    Returns:
        The model, and what ``from_pretrained`` says of its loading.

    Raises:
        ConfigError: a variant of a format that is not read.
        StateError: its tensors do not fit together.
        MissingDependencyError: a GGUF file without the package ``gguf``.

    Warns:
        AssayWarning: what is left out of the model, such as rounded activations.
    """
    options: dict[str, Any] = {"local_files_only": True, "output_loading_info": True}
    if path.suffix == GGUF:
        with _needing_gguf():
            import gguf  # noqa: F401
        return _pair(cls.from_pretrained(path.parent, gguf_file=path.name, dtype=_gguf_dtype(dtype), **options))
    method = method_of(path)
    if method == TORCHAO:
        model, info = _pair(cls.from_pretrained(path, dtype=dtype, use_safetensors=True, **options))
        return _dequantized(model, path), info
    return _from_state(path, FORMATS[method], cls, dtype, options)


def _from_state(
    path: Path, form: ForeignFormat, cls: Any, dtype: str, options: dict[str, Any]
) -> tuple[nn.Module, Mapping[str, Any]]:
    import transformers

    config = transformers.AutoConfig.from_pretrained(path, local_files_only=True, trust_remote_code=False)
    quantization = json.loads((path / CONFIG).read_text("utf-8"))["quantization_config"]
    if why := form.refused(quantization):
        raise ConfigError(
            describe(str(path), why, "a variant that is read", "Name a folder of floats, or save it anew")
        )
    if note := form.note(quantization):
        warn(f"{path}: {note}", AssayWarning)
    chosen = (getattr(config, "dtype", None) or torch.float16) if dtype == "auto" else getattr(torch, dtype)
    state = dict(float_state(path, form, quantization, chosen))
    del config.quantization_config
    named = getattr(transformers, (config.architectures or [""])[0], cls)  # an Auto class takes no state without a path
    return _pair(named.from_pretrained(None, config=config, state_dict=state, dtype=chosen, **options))


def float_state(path: Path, form: ForeignFormat, config: Config, dtype: torch.dtype) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a folder by name, with each quantized layer as its weight in floats.

    Raises:
        StateError: a file cannot be read, or the tensors of a layer do not fit together.
    """
    home = _home(path)
    layers = {name.removesuffix(form.marker) for name in home if name.rpartition(".")[2] == form.marker}
    for prefix in sorted(layers):
        names = {part: f"{prefix}{part}" for part in form.parts if f"{prefix}{part}" in home}
        parts = {part: _read(home[name], name) for part, name in names.items()}
        try:
            weight = form.dequantize(parts, config)
        except AssayError:
            raise
        except (KeyError, RuntimeError, ValueError, IndexError, TypeError, ZeroDivisionError) as error:
            shapes = ", ".join(f"{part} {tuple(tensor.shape)}" for part, tensor in parts.items())
            got = f"{shapes} ({type(error).__name__}: {error})"
            do = "Copy the folder again, with the config.json that belongs to it"
            raise StateError(describe(f"{path}, {prefix}weight", got, "tensors of one weight", do)) from error
        yield f"{prefix}weight", weight.to(dtype)
    taken = {f"{prefix}{part}" for prefix in layers for part in form.parts}
    for name in sorted(set(home) - taken):
        tensor = _read(home[name], name)
        yield name, tensor.to(dtype) if tensor.is_floating_point() else tensor


def _home(path: Path) -> dict[str, Path]:
    """The file of each tensor."""
    if (path / INDEX).is_file():
        return indexed_files(path / INDEX)
    result: dict[str, Path] = {}
    for file in sorted(path.glob("*.safetensors")):
        try:
            with safe_open(file, framework="pt") as handle:
                result |= dict.fromkeys(handle.keys(), file)
        except (SafetensorError, OSError) as error:
            got, do = f"no whole safetensors file ({error})", "Copy it again"
            raise StateError(describe(str(file), got, "weights", do)) from error
    if not result:
        do = "Copy all of its files"
        raise StateError(describe(str(path), "no safetensors files", "those of the model", do))
    return result


def _read(file: Path, name: str) -> Tensor:
    try:
        with safe_open(file, framework="pt") as handle:
            tensor: Tensor = handle.get_tensor(name)
            return tensor
    except (SafetensorError, OSError) as error:
        raise StateError(describe(str(file), f"no {name} ({error})", "a whole file", "Copy it again")) from error


def _pair(loaded: Any) -> tuple[nn.Module, Mapping[str, Any]]:
    model, info = loaded
    return model.eval(), info


def _dequantized(model: nn.Module, path: Path) -> nn.Module:
    """A model with torchao's tensors replaced by the floats that they stand for."""
    for name, module in model.named_modules():
        for part, parameter in list(module._parameters.items()):
            if parameter is None or type(parameter.data) is Tensor:
                continue
            kind = type(parameter.data).__name__
            if getattr(parameter, "activation_quantization", None) or getattr(parameter, "act_quant_kwargs", None):
                warn(
                    f"{path}: {name} rounds its activations, too, which is left out: weights are measured.",
                    AssayWarning,
                )
            try:
                floats = parameter.dequantize()
            except (NotImplementedError, AttributeError, RuntimeError) as error:
                got, do = f"{name}.{part}, a {kind} ({error})", "Save it in another layout of torchao"
                raise ConfigError(describe(str(path), got, "tensors with dequantize()", do)) from error
            module._parameters[part] = nn.Parameter(floats, requires_grad=False)
    return model


def _gguf_dtype(dtype: str) -> torch.dtype:
    found = torch.float32 if dtype == "auto" else getattr(torch, dtype)
    assert isinstance(found, torch.dtype)
    return found


def has_tokenizer(path: Path) -> bool:
    """Whether a GGUF file holds a tokenizer."""
    with _needing_gguf():
        import gguf

    return "tokenizer.ggml.tokens" in gguf.GGUFReader(path).fields


def _needing_gguf() -> AbstractContextManager[None]:
    return needing("gguf", "gguf", "files that end in .gguf")
