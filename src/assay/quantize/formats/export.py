"""Write quantized weights in the format of another library, whose own readers load them without assay."""

from __future__ import annotations

import copy
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from torch import nn

from assay._atomic import local_path
from assay.errors import ConfigError, describe, needing
from assay.quantize.candidates import Candidate, by_weight
from assay.quantize.files.file import PathLike, save
from assay.quantize.files.meta_models import from_config
from assay.quantize.files.quantized_files import QuantizedFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from assay.quantize.files.description import WeightDescription
    from assay.quantize.formats.folder_formats import FolderFormat

CONFIG = "config.json"
FORMATS = ("transformers", "compressed-tensors", "torchao", "gguf")
Layers: TypeAlias = "dict[str, Candidate]"


@dataclass(frozen=True)
class ExportResult:
    """What was written.

    Attributes:
        target: the folder, or the file of ``gguf``.
        files: the names of the files with weights.
        weights: how many quantized weights they hold.
        notes: what a reader should know, such as numbers that the format holds in another precision.
    """

    target: Path
    files: tuple[str, ...]
    weights: int
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join([f"{self.target}: {self.weights} quantized weights", *(f"  note: {n}" for n in self.notes)])


@dataclass(frozen=True)
class Source:
    """A quantized model of Transformers in files: what it stores, and the modules that it belongs to."""

    folder: Path
    files: QuantizedFiles
    model: nn.Module
    layers: Layers

    @property
    def weights(self) -> dict[str, WeightDescription]:
        """The quantized weights by name."""
        return dict(self.files.description.weights)


def export(source: PathLike | nn.Module, target: PathLike, format: str) -> ExportResult:
    """Write a quantized model of Transformers in a format that other libraries read.

    Every weight has the value that the canonical form gives it: :meth:`PackedWeight.dequantize`. What a format cannot
    express is refused before anything is written.

    - ``"transformers"``: a folder of floats, no smaller than before, which every program reads.
    - ``"compressed-tensors"``: read by ``from_pretrained`` where that package is installed, and by vLLM.
    - ``"torchao"``: read by ``from_pretrained`` where torchao is installed.
    - ``"gguf"``: one file for llama.cpp; also read by ``from_pretrained`` with ``gguf_file=``.

    Args:
        source: what ``quantize_shards`` or ``assay quantize --out`` wrote from a Hugging Face folder; or a model of
            Transformers to which a plan was applied.
        target: the folder to write; for ``"gguf"`` a file that ends in ``.gguf``.
        format: one of the four.

    Returns:
        What was written.

    Raises:
        ConfigError: an unknown format, one that cannot express a weight of the model, or a source that is no quantized
            model of Transformers.
        StateError: the source is damaged, or the disk is full.
        MissingDependencyError: without Transformers; for ``"gguf"`` without the package ``gguf``.

    Example:
        >>> import json, tempfile, torch, transformers
        >>> from assay.quantize import export, plan
        >>> sizes = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "vocab_size": 16}
        >>> config = transformers.LlamaConfig(num_attention_heads=2, **sizes)
        >>> model = transformers.LlamaForCausalLM(config)
        >>> model = plan(model, "int4:g32:sym", device="cpu").apply(model)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     written = export(model, f"{folder}/model", "compressed-tensors")
        ...     config = json.loads((written.target / "config.json").read_text())
        >>> config["quantization_config"]["format"]
        'pack-quantized'
    """
    _check_name(format)
    target = local_path("target", target)
    if isinstance(source, nn.Module):
        with tempfile.TemporaryDirectory(prefix="assay-") as folder:
            return _written(open_source(_saved(source, Path(folder))), target, format)
    return _written(open_source(Path(source)), target, format)


def check_format(format: str, weights: dict[str, WeightDescription], layers: Layers, target: Path | None) -> None:
    """Raise where a format is unknown, or cannot express a weight or its layer."""
    _check_name(format)
    why_not = _why_not(format)
    if format == "gguf" and target is not None and target.suffix != ".gguf":
        raise ConfigError(describe("target", str(target), "a file that ends in .gguf", f"Name {target}.gguf"))
    if format != "gguf" and target is not None and (target.suffix in (".gguf", ".safetensors") or target.is_file()):
        raise ConfigError(describe("target", f"{target}, which is a file", "a folder", "Name a folder"))
    for name, weight in weights.items():
        layer = layers.get(name)
        why = why_not(weight)
        if layer is None:
            why = "the model of config.json has no linear layer or embedding of this name"
        elif layer.transposed and format != "transformers":
            why = "its layer is a Conv1D, which the format's readers do not replace; choose --format transformers"
        if why:
            got = f"{weight.scheme} for {name}: {why}"
            raise ConfigError(describe(f"format {format}", got, "weights that it can express", "Change its scheme"))


def _check_name(format: str) -> None:
    if format not in FORMATS:
        raise ConfigError(describe("format", repr(format), " or ".join(FORMATS), "Name one of them"))


def _why_not(format: str) -> Callable[[WeightDescription], str]:
    if format == "gguf":
        from assay.quantize.formats.gguf_blocks import why_not

        return why_not
    return folder_format(format).why_not


def folder_format(format: str) -> FolderFormat:
    """What a format of a folder stores."""
    from assay.quantize.formats import compressed_tensors, plain_floats, torchao

    formats = {
        "transformers": plain_floats.FORMAT,
        "compressed-tensors": compressed_tensors.FORMAT,
        "torchao": torchao.FORMAT,
    }
    return formats[format]


def _written(source: Source, target: Path, format: str) -> ExportResult:
    check_format(format, source.weights, source.layers, target)
    if format == "gguf":
        from assay.quantize.formats.gguf_file import write

        notes = write(source, target)
        return ExportResult(target, (target.name,), len(source.weights), notes)
    from assay.quantize.formats.folder_writer import write_folder

    files = write_folder(source, target, folder_format(format))
    return ExportResult(target, files, len(source.weights))


def open_source(folder: Path) -> Source:
    """A quantized model in files, with its modules."""
    if not (folder / CONFIG).is_file():
        do = "Name the folder that assay quantize wrote from a Hugging Face folder"
        raise ConfigError(describe("source", f"{folder} without {CONFIG}", "a quantized model of Transformers", do))
    files = QuantizedFiles(folder)
    model = from_config(folder)
    if model is None:
        with _needing_transformers():
            import transformers  # noqa: F401
        do = "Install a version of Transformers that has it"
        raise ConfigError(describe(str(folder), "a model that Transformers lacks", "one that it can make", do))
    return Source(folder, files, model, by_weight(model))


def _saved(model: nn.Module, folder: Path) -> Path:
    """The files of a model in memory, as ``quantize_shards`` writes them."""
    with _needing_transformers():
        import transformers

    if not isinstance(model, transformers.PreTrainedModel):
        do = "Save it with assay.quantize.save, which takes any module"
        raise ConfigError(describe("source", type(model).__name__, "a model of Transformers", do))
    save(model, folder)
    config = copy.deepcopy(model.config)
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)
    return folder


def _needing_transformers() -> AbstractContextManager[None]:
    return needing("transformers", "hf", "the formats of quantized models")
