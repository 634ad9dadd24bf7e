"""A quantized model written as a Hugging Face folder, in the format of another library, one weight at a time."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from torch import Tensor, nn

from assay._atomic import write_text, write_whole
from assay.errors import ConfigError, describe
from assay.quantize.files.container import Container, TensorEntry, in_shards
from assay.quantize.files.fileset import SHARD_BYTES
from assay.quantize.formats.folder_formats import FolderFormat, layer_name, meta_weight
from assay.quantize.streaming.tensor_source import CONFIG, FILE, INDEX, WEIGHTS

if TYPE_CHECKING:
    from assay.quantize.formats.export import Source


def write_folder(source: Source, target: Path, form: FolderFormat, shard_bytes: int = SHARD_BYTES) -> tuple[str, ...]:
    """Write it: weights, configuration, and what lay beside them. Returns the names of the files with weights.

    Raises:
        ConfigError: the folder holds a model already, or cannot be written.
        StateError: the disk is full, or the source is damaged.
    """
    _check_empty(source.folder, target)
    others = source.files.description.unquantized()
    groups = {name: [TensorEntry.of(*each) for each in _parts(source, form, name, False)] for name in source.weights}
    groups |= {name: [source.files.entry(name)] for name in others}
    shards = in_shards(groups.values(), shard_bytes)
    names = _names(len(shards))
    metadata = {"format": "pt", **form.metadata(source.weights, others)}
    made = [
        Container(target / name, entries, lambda sums: metadata, target / f".{name}.part")
        for name, entries in zip(names, shards, strict=True)
    ]
    home = {entry.name: container for container in made for entry in container.entries}
    try:
        _fill(source, form, others, made, home)
    except BaseException:
        for container in made:
            container.part.unlink(missing_ok=True)
        raise
    if len(made) > 1:
        _write_index(target, {name: container.path.name for name, container in home.items()}, made)
    _write_beside(source, target, form)
    return tuple(names)


def _fill(
    source: Source, form: FolderFormat, others: list[str], made: list[Container], home: dict[str, Container]
) -> None:
    for container in made:
        container.reserve()
    for name in source.weights:
        for part, tensor in _parts(source, form, name, True):
            home[part].put(part, tensor)
    for name in others:
        home[name].put(name, source.files.tensor(name))
    for container in made:
        container.seal({})
    for container in made:
        container.publish()


def _parts(source: Source, form: FolderFormat, name: str, with_values: bool) -> list[tuple[str, Tensor]]:
    """The tensors that stand for a weight, in the order in which the layer has its own weight."""
    weight = source.weights[name]
    scales = source.files.entry(f"{name}.scales").dtype
    packed = source.files.weight(name) if with_values else meta_weight(weight, scales)
    is_turned = source.layers[name].transposed
    tensors = form.tensors(name, weight, packed).items()
    return [(part, tensor.t().contiguous() if is_turned else tensor) for part, tensor in tensors]


def _check_empty(source: Path, target: Path) -> None:
    """Raise where the target is the source, or holds a model."""
    models = [path for path in target.glob("*") if path.suffix in WEIGHTS] if target.is_dir() else []
    is_source = target.exists() and target.resolve() == source.resolve()
    if models or is_source:
        got = f"{target}, the source" if is_source else f"{target} with {models[0].name}"
        raise ConfigError(describe("target", got, "a folder without a model", "Name another folder"))


def _names(count: int) -> list[str]:
    return [FILE] if count == 1 else [f"model-{k + 1:05d}-of-{count:05d}.safetensors" for k in range(count)]


def _write_index(target: Path, weight_map: dict[str, str], made: list[Container]) -> None:
    total = sum(entry.nbytes for container in made for entry in container.entries)
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(weight_map.items()))}
    write_text(target / INDEX, json.dumps(index, indent=2) + "\n")


def _write_beside(source: Source, target: Path, form: FolderFormat) -> None:
    """Write the configuration of the format, and copy the tokenizer and what else lies there."""
    skipped = [
        layer_name(name)
        for name, layer in source.layers.items()
        if isinstance(layer.module, nn.Linear) and name not in source.weights
    ]
    config = json.loads((source.folder / CONFIG).read_text("utf-8"))
    config.pop("quantization_config", None)
    if (own := form.config(source.weights, skipped)) is not None:
        config["quantization_config"] = own
    write_text(target / CONFIG, json.dumps(config, indent=2) + "\n")
    for path in source.folder.iterdir():
        is_weight = path.suffix in WEIGHTS or path.name.endswith(".index.json")
        if path.is_file() and path.name != CONFIG and not is_weight and not path.name.startswith("."):
            write_whole(target / path.name, lambda part, path=path: shutil.copyfile(path, part))  # type: ignore[misc]
