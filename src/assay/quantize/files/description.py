"""What the tensors of a quantized file mean, as JSON in its header; docs/quantized_files.md is its specification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

import torch

from assay.errors import AssayError, StateError, describe
from assay.quantize.files.container import Metadata, TensorEntry
from assay.quantize.layers import QuantizedEmbedding, QuantizedLinear
from assay.quantize.packed_weight import PackedWeight
from assay.quantize.scheme import Kind, Scheme

VERSION = 1
KEY, CHECKSUM = "assay.quantized", "assay.sha256"
FIELDS = ("packed", "scales", "zeros")
NO_CHECKSUM = hashlib.sha256().hexdigest()
_AGAIN = "Save the model again"


@dataclass(frozen=True)
class WeightDescription:
    """One quantized weight of a file: its tensors are ``<name>.packed``, ``<name>.scales`` and ``<name>.zeros``.

    Attributes:
        kind: what multiplies with it.
        scheme: what the integers mean.
        shape: ``(N, K)``: ``(out, in)``, or ``(rows, width)`` of an embedding.
        dtype: of the weight before, which is that of the layer's results.
    """

    kind: Kind
    scheme: Scheme
    shape: tuple[int, int]
    dtype: torch.dtype

    @classmethod
    def of(cls, layer: QuantizedLinear | QuantizedEmbedding) -> WeightDescription:
        """What is said of the weight of a layer."""
        kind: Kind = "embedding" if isinstance(layer, QuantizedEmbedding) else "linear"
        return cls(kind, layer.weight.scheme, layer.weight.shape, layer.weight.dtype)

    def entries(self, name: str, scales: torch.dtype) -> list[TensorEntry]:
        """What its tensors will be."""
        rows, width = self.shape
        groups = (rows, width // self.scheme.group(width))
        result = [
            TensorEntry(f"{name}.packed", torch.uint8, (rows, self.scheme.row_bytes(width))),
            TensorEntry(f"{name}.scales", scales, groups),
        ]
        return result if self.scheme.symmetric else [*result, TensorEntry(f"{name}.zeros", scales, groups)]

    def to_json(self) -> dict[str, Any]:
        """As JSON has it; every part of the scheme is said, so that no default can change it."""
        dtype = str(self.dtype).removeprefix("torch.")
        return {"kind": self.kind, "shape": list(self.shape), "dtype": dtype, "scheme": asdict(self.scheme)}

    @classmethod
    def from_json(cls, header: Mapping[str, Any]) -> WeightDescription:
        """Read it.

        Raises:
            AssayError: an invalid scheme.
            KeyError, TypeError, ValueError: it is none.
        """
        rows, width = (int(size) for size in header["shape"])
        dtype = getattr(torch, header["dtype"])
        scheme = Scheme(**header["scheme"])
        if header["kind"] not in get_args(Kind) or not isinstance(dtype, torch.dtype) or scheme.why_not((rows, width)):
            raise ValueError(scheme.why_not((rows, width)) or "a kind or a dtype that there is not")
        return cls(header["kind"], scheme, (rows, width), dtype)


@dataclass(frozen=True)
class FileDescription:
    """What a file says of itself, or all files of a model together.

    Attributes:
        weights: the quantized ones by the name that the weight had. All other tensors were skipped.
        tensors: SHA-256 of the bytes of each tensor.
        tied: further names of tensors or weights -> the name under which they are stored.
        whole: the checksum of all files of the model together; the same in each.
    """

    weights: Mapping[str, WeightDescription] = field(default_factory=dict)
    tensors: Mapping[str, str] = field(default_factory=dict)
    tied: Mapping[str, str] = field(default_factory=dict)
    whole: str = NO_CHECKSUM

    def to_json(self) -> str:
        """One line of JSON, the same for equal descriptions."""
        weights = {name: weight.to_json() for name, weight in self.weights.items()}
        header = {"version": VERSION, "whole": self.whole, "tensors": dict(self.tensors), "tied": dict(self.tied)}
        return json.dumps(header | {"weights": weights}, sort_keys=True)

    def to_metadata(self) -> Metadata:
        """What the header of a safetensors file says."""
        text = self.to_json()
        return {KEY: text, CHECKSUM: hashlib.sha256(text.encode()).hexdigest()}

    def digest(self) -> str:
        """The checksum of all that it says but itself."""
        return hashlib.sha256(replace(self, whole=NO_CHECKSUM).to_json().encode()).hexdigest()

    def parts(self, name: str) -> list[str]:
        """The names of the tensors of a weight."""
        names = FIELDS[:2] if self.weights[name].scheme.symmetric else FIELDS
        return [f"{name}.{part}" for part in names]

    def sums(self, name: str) -> tuple[object, ...]:
        """What is the same for two names of the same values: the checksums of a tensor or a weight."""
        weight = self.weights.get(name)
        return weight, *(self.tensors[part] for part in ([name] if weight is None else self.parts(name)))

    def unquantized(self) -> list[str]:
        """The names of the tensors that were left as they are."""
        parts = {part for name in self.weights for part in self.parts(name)}
        return [name for name in self.tensors if name not in parts]

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str] | None, where: str) -> FileDescription:
        """Read that of one file.

        Raises:
            StateError: it is missing, was changed, or it is of another version.
        """
        metadata = metadata or {}
        if KEY not in metadata or CHECKSUM not in metadata:
            do = "Pass what assay.quantize.save wrote; a model of floats is quantized first"
            raise StateError(describe(where, "a safetensors file of something else", "a quantized model", do))
        text = metadata[KEY]
        if hashlib.sha256(text.encode()).hexdigest() != metadata[CHECKSUM]:
            do = "Copy the file again, or save the model again"
            raise StateError(describe(where, "a description that was changed", "that of its checksum", do))
        try:
            header = json.loads(text)
            _check_version(header.get("version"), where)
            weights = {str(name): WeightDescription.from_json(weight) for name, weight in header["weights"].items()}
            tensors = {str(name): str(checksum) for name, checksum in header["tensors"].items()}
            tied = {str(name): str(other) for name, other in header["tied"].items()}
            return cls(weights, tensors, tied, str(header["whole"]))
        except StateError:
            raise
        except (AssayError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            got = f"a description that cannot be read ({type(error).__name__}: {error})"
            raise StateError(describe(where, got, "that of a quantized model", _AGAIN)) from error


def merged(parts: Iterable[FileDescription]) -> FileDescription:
    """What all files of a model say together."""
    weights: dict[str, WeightDescription] = {}
    tensors: dict[str, str] = {}
    tied: dict[str, str] = {}
    for part in parts:
        weights |= part.weights
        tensors |= part.tensors
        tied |= part.tied
    whole = FileDescription(weights, tensors, tied)
    return replace(whole, whole=whole.digest())


def tensors_of(name: str, integers: PackedWeight) -> dict[str, torch.Tensor]:
    """The tensors of a weight by their names in a file."""
    return {f"{name}.{part}": tensor for part, tensor in zip(FIELDS, integers.tensors, strict=False)}


def _check_version(version: object, where: str) -> None:
    if version != VERSION:
        do = "Read it with the version of assay that wrote it"
        raise StateError(describe(where, f"version {version} of the form", f"version {VERSION}", do))
