"""A plan: what happens to each layer of a model on a device, as a value that is shown before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._records import Record
from assay.quantize.candidates import Others
from assay.quantize.planning.recipe import Recipe, RecipeRule
from assay.quantize.scheme import Kind, Scheme
from assay.render import Document, Viewable

if TYPE_CHECKING:
    from torch import nn

    from assay.quantize.rounding import Calibration


class LayerPlan(Record):
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


class Plan(Record, Viewable, schema="assay.plan/1"):
    """What happens to each layer of a model on a device; made by :func:`assay.quantize.plan`.

    A plan is shown as text, Markdown or a page, and saved as JSON, so that it can be reviewed and applied later.

    Attributes:
        layers: every linear layer and embedding, in the model's order.
        others: what else holds parameters.
        device: the device that the plan is for; it need not be here.
        dtype: of the activations.
        method: how weights are rounded.
        torch: the release of torch whose operators the device is said to have.
        notes: what the device lacks and what happens instead, and what a recipe asked for and is done otherwise.

    Example:
        >>> from torch import nn
        >>> from assay.quantize import plan
        >>> made = plan(nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)), "int8", device="cpu")
        >>> [(layer.name, str(layer.scheme), layer.bytes_before, layer.bytes_after) for layer in made.layers]
        [('0', 'int8', 65536, 16512), ('2', 'int8', 2560, 660)]
        >>> made.bytes_before > 3 * made.bytes_after
        True
        >>> Plan.from_json(made.to_json()) == made
        True
    """

    layers: tuple[LayerPlan, ...]
    others: tuple[Others, ...]
    device: str
    dtype: str
    method: str
    torch: str
    notes: tuple[str, ...] = ()

    pipe_width = 120

    def __repr__(self) -> str:
        """One line: the device, how many layers become integers, and the bytes of the model before and after."""
        layers = f"{len(self.quantized)} of {len(self.layers)} layers quantized"
        return f"<Plan for {self.device}: {layers}; {self.bytes_before:,} to {self.bytes_after:,} bytes>"

    @property
    def quantized(self) -> tuple[LayerPlan, ...]:
        """The layers that become integers."""
        return tuple(layer for layer in self.layers if layer.scheme is not None)

    @property
    def skipped(self) -> tuple[LayerPlan, ...]:
        """The layers that stay as they are, each with the reason."""
        return tuple(layer for layer in self.layers if layer.scheme is None)

    @property
    def bytes_before(self) -> int:
        """What all parameters take now, but for biases of layers."""
        return sum(layer.bytes_before for layer in self.layers) + sum(other.nbytes for other in self.others)

    @property
    def bytes_after(self) -> int:
        """What they take then, as they are stored."""
        return sum(layer.bytes_after for layer in self.layers) + sum(other.nbytes for other in self.others)

    @property
    def bytes_packed(self) -> int:
        """What kernels keep beside that on the device, once they have run."""
        return sum(layer.bytes_packed for layer in self.layers)

    @property
    def recipe(self) -> Recipe:
        """The plan as a recipe: one rule for each layer, by its whole name."""
        rules = [RecipeRule(layer.name, (layer.scheme,) if layer.scheme else (), layer.kind) for layer in self.layers]
        return Recipe(tuple(rules), self.device, self.dtype, self.method)

    def to_document(self) -> Document:
        """What is shown of the plan; layers to which the same happens share a row."""
        from assay.quantize.planning.plan_view import plan_document

        return plan_document(self)

    def __str__(self) -> str:
        return self.to_text(self.pipe_width).strip("\n")

    def apply(self, model: nn.Module, *, calibration: Calibration | None = None) -> nn.Module:
        """Do what the plan says to the model that it was made for, in place.

        All new layers are made first; then they take the places of the old ones. If anything fails before, the model is
        as it was. Biases, hooks and the modes of layers are kept; the model stays on its device and keeps its dtype. A
        model of Transformers can be saved with ``save_pretrained``.

        Args:
            model: the planned model, or another one of the same layers, shapes and dtypes, with its weights.
            calibration: what went into its layers, for the method ``"gptq"`` and no other.

        Returns:
            The same model.

        Raises:
            ConfigError: calibration data that the method does not take, or none where it needs them.
            StateError: it is another model, or its weights are on the meta device.
            InvalidValuesError: a weight is NaN or infinite.
        """
        from assay.quantize.planning.apply import apply

        return apply(self, model, calibration)
