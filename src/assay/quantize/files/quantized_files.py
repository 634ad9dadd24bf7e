"""The files of a quantized model in the canonical form, read tensor by tensor after a comparison with its checksum."""

from __future__ import annotations

from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from assay.errors import AssayError, StateError, describe
from assay.quantize.files.container import DTYPES, TensorEntry, sha256
from assay.quantize.files.description import FIELDS, FileDescription, merged
from assay.quantize.files.fileset import files_of
from assay.quantize.packed_weight import PackedWeight

_AGAIN = "Copy all files of the model again, or save it again"


class QuantizedFiles:
    """The files of one quantized model; only their headers are read before a tensor is asked for.

    Args:
        path: what ``save`` or ``quantize_shards`` wrote: the folder, or the file.

    Raises:
        StateError: a file is missing, cut short, of another version or of another model.

    Attributes:
        description: what all files say together.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        parts = {file: _header(file) for file in files_of(path)}
        self.description: FileDescription = merged(parts.values())
        for file, part in parts.items():
            if part.whole != self.description.whole:
                got = f"{file.name} of another model than the rest" if len(parts) > 1 else "one file of several"
                raise StateError(describe(str(path), got, "all files of one model", _AGAIN))
        self._home = {name: file for file, part in parts.items() for name in part.tensors}

    def entry(self, name: str) -> TensorEntry:
        """The dtype and the shape of one tensor; its values are not read."""
        with safe_open(self._home[name], framework="pt") as handle:
            part = handle.get_slice(name)
            return TensorEntry(name, DTYPES[part.get_dtype()], tuple(part.get_shape()))

    def tensor(self, name: str) -> Tensor:
        """One tensor, on the CPU.

        Raises:
            StateError: its bytes are not those of its checksum.
        """
        file = self._home[name]
        with safe_open(file, framework="pt") as handle:
            tensor: Tensor = handle.get_tensor(name).clone()  # a mapping of the file would change when the file does
        if sha256(tensor) != self.description.tensors[name]:
            raise StateError(describe(str(file), f"other bytes of {name}", "those of its checksum", _AGAIN))
        return tensor

    def weight(self, name: str) -> PackedWeight:
        """One quantized weight, on the CPU.

        Raises:
            StateError: its bytes are not those of its checksums, or it is no weight of its scheme.
        """
        weight = self.description.weights[name]
        named = {part.rpartition(".")[2]: self.tensor(part) for part in self.description.parts(name)}
        packed, scales, zeros = (named.get(part) for part in FIELDS)
        assert packed is not None
        assert scales is not None
        try:
            return PackedWeight(packed, scales, zeros, weight.scheme, weight.shape).check(name)
        except AssayError as error:
            raise StateError(describe(f"{self.path}, {name}", str(error), "a weight of its scheme", _AGAIN)) from error


def _header(file: Path) -> FileDescription:
    try:
        with safe_open(file, framework="pt") as handle:
            metadata, names = handle.metadata(), set(handle.keys())
    except (SafetensorError, OSError) as error:
        got = f"no whole safetensors file ({error})"
        raise StateError(describe(str(file), got, "what assay.quantize.save wrote", _AGAIN)) from error
    description = FileDescription.from_metadata(metadata, str(file))
    expected = set(description.tensors)
    if names != expected:
        different = sorted(names ^ expected)[0]
        got = f"{'no' if different in expected else 'also'} {different}"
        raise StateError(describe(str(file), got, "the tensors that it describes", _AGAIN))
    return description
