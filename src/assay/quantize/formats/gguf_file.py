"""A quantized model of Transformers as one GGUF file, for llama.cpp and everything that is built on it.

Names and metadata are those of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The rows of the queries and
keys of Llama are in the order of https://github.com/ggml-org/llama.cpp/blob/master/convert_hf_to_gguf.py, as llama.cpp
rotates neighbouring pairs where Transformers rotates halves. Rows keep their groups, so no value changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from assay._atomic import write_whole
from assay.errors import ConfigError, describe, needing
from assay.quantize.formats.gguf_blocks import TYPES, blocks

if TYPE_CHECKING:
    from assay.quantize.formats.export import Source

ARCHITECTURES = {"llama": "llama", "mistral": "llama", "qwen2": "qwen2", "qwen3": "qwen3"}
"""``model_type`` of Transformers -> the architecture of GGUF."""
PERMUTED = ("q_proj", "k_proj")
_FLOATS = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def write(source: Source, target: Path) -> tuple[str, ...]:
    """Write the file. Returns what its reader should know.

    Raises:
        ConfigError: the architecture is none of :data:`ARCHITECTURES`, or its positions are scaled.
        MissingDependencyError: without the package ``gguf``.
        StateError: the source is damaged.
    """
    with needing("gguf", "gguf", "the format gguf"):
        import gguf
    config = json.loads((source.folder / "config.json").read_text("utf-8"))
    architecture_of(config)
    changes: list[float] = []
    write_whole(target, lambda part: _fill(gguf, part, source, config, target.stem, changes))
    notes = ["it holds no tokenizer: pass token ids, or name the folder of the tokenizer"]
    if max(changes, default=0.0):
        notes.append(f"scales and minimums are float16: weights differ by at most {max(changes):.2g} from the source")
    return tuple(notes)


def _fill(gguf: Any, part: Path, source: Source, config: dict[str, Any], name: str, changes: list[float]) -> None:
    arch = architecture_of(config)
    with closing(gguf.GGUFWriter(part, arch)) as writer:
        _add_metadata(gguf, writer, source, config, name)
        name_of = _namer(gguf, arch, config["num_hidden_layers"])
        for tensor, kind, shape, nbytes in _infos(gguf, source):
            writer.add_tensor_info(name_of(tensor), shape, np.dtype(np.uint8), nbytes, raw_dtype=kind)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_ti_data_to_file()
        for data, change in _contents(source, _permutation(config, arch)):
            writer.write_tensor_data(data)
            changes.append(change)


def _infos(gguf: Any, source: Source) -> Iterator[tuple[str, Any, tuple[int, ...], int]]:
    """The name, the type, the shape in bytes and the bytes of each tensor, in the order of :func:`_contents`."""
    for name, weight in source.weights.items():
        kind = gguf.GGMLQuantizationType[TYPES[weight.scheme]]
        size, nbytes = gguf.GGML_QUANT_SIZES[kind]
        rows, width = weight.shape
        yield name, kind, (rows, width // size * nbytes), rows * (width // size) * nbytes
    for name in source.files.description.unquantized():
        entry = source.files.entry(name)
        dtype = _dtype(entry.dtype, entry.shape)
        shape = (*entry.shape[:-1], entry.shape[-1] * dtype.itemsize)
        yield name, gguf.GGMLQuantizationType[_FLOATS[dtype]], shape, int(np.prod(shape))


def _contents(source: Source, order: Callable[[str, int], Tensor | None]) -> Iterator[tuple[np.ndarray, float]]:
    """The bytes of each tensor, and how much rounding to float16 changed it."""
    for name in source.weights:
        packed = source.files.weight(name)
        rows = order(name, packed.shape[0])
        yield blocks(packed if rows is None else packed.rows(rows), name)
    for name in source.files.description.unquantized():
        tensor = source.files.tensor(name)
        rows = order(name, tensor.shape[0])
        tensor = tensor if rows is None else tensor.index_select(0, rows)
        yield tensor.to(_dtype(tensor.dtype, tuple(tensor.shape))).contiguous().view(torch.uint8).numpy(), 0.0


def _dtype(dtype: torch.dtype, shape: tuple[int, ...]) -> torch.dtype:
    """The dtype of a tensor of floats in the file: llama.cpp multiplies with vectors in float32 only."""
    return dtype if len(shape) > 1 and dtype in _FLOATS else torch.float32


def _permutation(config: dict[str, Any], arch: str) -> Callable[[str, int], Tensor | None]:
    """For the name and the rows of a tensor: the order of its rows; None where they stay."""
    heads = config["num_attention_heads"]
    by_layer = {"q_proj": heads, "k_proj": config.get("num_key_value_heads") or heads}

    def order(name: str, rows: int) -> Tensor | None:
        layer = name.split(".")[-2] if "." in name else ""
        if arch != "llama" or layer not in PERMUTED:
            return None
        number = torch.arange(rows, device="cpu").reshape(by_layer[layer], 2, -1)
        return number.transpose(1, 2).reshape(rows)

    return order


def _namer(gguf: Any, arch: str, layers: int) -> Callable[[str], str]:
    kind = next(each for each, name in gguf.MODEL_ARCH_NAMES.items() if name == arch)
    names = gguf.get_tensor_name_map(kind, layers)

    def name_of(name: str) -> str:
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if found is None:
            do = "Choose another format"
            raise ConfigError(describe(f"format gguf, {name}", f"no name for it in {arch}", "a tensor of it", do))
        return str(found)

    return name_of


def architecture_of(config: dict[str, Any]) -> str:
    kind = config.get("model_type")
    do = "Choose another format, or convert the model with llama.cpp's convert_hf_to_gguf.py"
    if kind not in ARCHITECTURES:
        raise ConfigError(describe("format gguf", f"a model of type {kind}", " or ".join(ARCHITECTURES), do))
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    scaling = rope.get("rope_type", rope.get("type", "default"))
    if scaling != "default":
        raise ConfigError(describe("format gguf", f"positions scaled as {scaling}", "positions without scaling", do))
    if config.get("hidden_act") != "silu":
        raise ConfigError(describe("format gguf", f"the activation {config.get('hidden_act')}", "silu", do))
    if config.get("sliding_window") and config.get("use_sliding_window", True):
        raise ConfigError(describe("format gguf", "a sliding window", "attention to all that came before", do))
    return ARCHITECTURES[kind]


def _add_metadata(gguf: Any, writer: Any, source: Source, config: dict[str, Any], name: str) -> None:
    heads = config["num_attention_heads"]
    rope = config.get("rope_parameters") or {}
    head_dim = config.get("head_dim") or config["hidden_size"] // heads
    kinds = {TYPES[weight.scheme] for weight in source.weights.values() if weight.kind == "linear"}
    file_types = [gguf.LlamaFileType[f"MOSTLY_{kind}"] for kind in sorted(kinds)]
    writer.add_name(name)
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config.get("num_key_value_heads") or heads)
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    writer.add_rope_dimension_count(head_dim)
    writer.add_rope_freq_base(float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0))
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(file_types[0] if file_types else gguf.LlamaFileType.ALL_F32)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_tokenizer_model("none")
