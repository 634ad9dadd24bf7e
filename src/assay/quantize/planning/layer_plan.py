"""The parts of a plan: what happens to one layer, and what stays as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from assay.quantize.scheme import Scheme

if TYPE_CHECKING:
    from assay.quantize.planning.recipe import Kind


@dataclass(frozen=True)
class LayerPlan:
    """What happens to one layer.

    Attributes:
        name: its name in the model.
        kind: ``"linear"`` or ``"embedding"``.
        shape: of its weight, ``(out, in)`` or ``(rows, width)``.
        dtype: of its weight now.
        scheme: what its weight becomes; ``None`` where it is skipped.
        kernels: (from how many rows of activations on, the kernel that multiplies them), in the order of the rows.
        bytes_before: of its weight now; 0 where another layer that shares it counts them.
        bytes_after: of its weight then, with scales and zeros; the same.
        bytes_packed: what a kernel keeps beside it on the device, in a layout of its own, once it has run.
        why: why it is skipped, or why it does not get the first scheme that was asked for.
        tied: the layers that share its weight, and go on sharing it.
    """

    name: str
    kind: Kind
    shape: tuple[int, int]
    dtype: str
    scheme: Scheme | None
    kernels: tuple[tuple[int, str], ...]
    bytes_before: int
    bytes_after: int
    bytes_packed: int = 0
    why: str = ""
    tied: tuple[str, ...] = ()

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LayerPlan:
        """The layer of the plain values that `Plan.to_dict` gives."""
        rows, columns = data["shape"]
        return cls(
            **data
            | {
                "shape": (rows, columns),
                "scheme": None if data["scheme"] is None else Scheme.parse(data["scheme"]),
                "kernels": tuple((start, name) for start, name in data["kernels"]),
                "tied": tuple(data["tied"]),
            }
        )


@dataclass(frozen=True)
class Others:
    """Modules of one class that hold parameters and are neither linear layers nor embeddings: they stay as they are."""

    kind: str
    count: int
    bytes: int
