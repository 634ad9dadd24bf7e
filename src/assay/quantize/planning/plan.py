"""A plan: what happens to each layer of a model on a device, as a value that is printed before anything runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from assay.quantize.scheme import Scheme

if TYPE_CHECKING:
    import torch
    from rich.console import Console
    from torch import nn

    from assay.quantize.planning.recipe import Kind, Recipe, RecipeLike
    from assay.quantize.rounding import Calibration

FORM = 1


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


@dataclass(frozen=True)
class Others:
    """Modules of one class that hold parameters and are neither linear layers nor embeddings: they stay as they are."""

    kind: str
    count: int
    bytes: int


@dataclass(frozen=True)
class Plan:
    """What happens to each layer of a model on a device; made by :func:`plan`.

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
        >>> made = plan(nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)), "int8", device="cpu")
        >>> [(layer.name, str(layer.scheme), layer.bytes_before, layer.bytes_after) for layer in made.layers]
        [('0', 'int8', 65536, 16512), ('2', 'int8', 2560, 660)]
        >>> made.bytes_before > 3 * made.bytes_after
        True
    """

    layers: tuple[LayerPlan, ...]
    others: tuple[Others, ...]
    device: str
    dtype: str
    method: str
    torch: str
    notes: tuple[str, ...] = ()

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
        return sum(layer.bytes_before for layer in self.layers) + sum(other.bytes for other in self.others)

    @property
    def bytes_after(self) -> int:
        """What they take then, as they are stored."""
        return sum(layer.bytes_after for layer in self.layers) + sum(other.bytes for other in self.others)

    @property
    def bytes_packed(self) -> int:
        """What kernels keep beside that on the device, once they have run."""
        return sum(layer.bytes_packed for layer in self.layers)

    def show(self, console: Console | None = None) -> None:
        """Print the plan; layers of one form share a row."""
        from assay.quantize.planning.show import show

        show(self, console)

    def __str__(self) -> str:
        from assay.quantize.planning.show import text

        return text(self)

    def to_markdown(self) -> str:
        """The plan as Markdown."""
        from assay.quantize.planning.show import markdown

        return markdown(self)

    def to_json(self) -> str:
        """The plan as JSON, layer by layer."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain values."""
        layers = [asdict(layer) | {"scheme": layer.scheme and str(layer.scheme)} for layer in self.layers]
        totals = {name: getattr(self, name) for name in ("bytes_before", "bytes_after", "bytes_packed")}
        return {"plan": FORM} | asdict(self) | {"layers": layers} | totals

    @classmethod
    def from_json(cls, text: str, where: str = "plan") -> Plan:
        """The plan that :meth:`to_json` wrote, so that a plan can be reviewed and applied later.

        Args:
            text: the JSON.
            where: what to call it in messages, mostly the name of the file.

        Raises:
            StateError: it was cut short, is no plan, or was changed into one that contradicts itself.

        Example:
            >>> from torch import nn
            >>> made = plan(nn.Sequential(nn.Linear(256, 64)), "int8", device="cpu")
            >>> Plan.from_json(made.to_json()) == made
            True
        """
        from assay.quantize.planning.plan_json import from_json

        return from_json(text, where)

    @property
    def recipe(self) -> Recipe:
        """The plan as a recipe: one rule for each layer, by its whole name."""
        from assay.quantize.planning.recipe import Recipe, RecipeRule

        rules = [RecipeRule(layer.name, (layer.scheme,) if layer.scheme else (), layer.kind) for layer in self.layers]
        return Recipe(tuple(rules), self.device, self.dtype, self.method)

    def apply(self, model: nn.Module, *, calibration: Calibration | None = None) -> nn.Module:
        """Do what the plan says to the model that it was made for, in place.

        All new layers are made first; then they take the places of the old ones. Whatever fails before, the model is
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


def plan(
    model: nn.Module,
    scheme: RecipeLike | None = None,
    device: str | torch.device = "auto",
    *,
    recipe: RecipeLike | None = None,
    dtype: str | torch.dtype | None = None,
    include: Sequence[str] | str = (),
    exclude: Sequence[str] | str = (),
    method: str | None = None,
    release: str | None = None,
) -> Plan:
    """Say what quantization does to each layer of a model on a device, before anything is done.

    Args:
        model: any module; its weights may be on the meta device.
        scheme: ``"int4"`` (the default), ``"int8"``, ``"int3:g64"``, several in order of preference
            (``"int4, int8"``), or anything that is a recipe.
        device: where the model shall run; it need not be here. ``"auto"``: the first accelerator of this machine.
        recipe: schemes by the names of layers, instead of ``scheme``; see :meth:`Recipe.parse`.
        dtype: of the activations; that of the weights by default.
        include: names, or parts of them between dots; where given, other layers are skipped.
        exclude: names, or parts of them between dots, of layers that are skipped.
        method: how weights are rounded: ``"nearest"`` (unless the recipe says otherwise), ``"search"``, ``"hqq"``, or
            ``"gptq"``, which needs calibration data when the plan is applied.
        release: an older release of torch, such as ``"2.4"``: what the device is known to have lacked then.

    Returns:
        The plan. ``print`` shows it, :meth:`Plan.apply` does it.

    Raises:
        ConfigError: no such scheme, device, dtype, method or release; a pattern that no layer matches; or nothing that
            can be quantized.

    Example:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10)).bfloat16()
        >>> made = plan(model, "int4", device="mps")
        >>> made.layers[0].kernels[0], made.skipped[0].why
        ((1, 'int4pack'), 'its rows of 64 weights cannot be cut into groups of 128; int4:g64 fits')
        >>> type(made.apply(model)[0]).__name__
        'QuantizedLinear'

    Source:
        Which operator a device has: ``native_functions.yaml`` of the installed torch; what its kernels take:
        ``devices/known/quantization.toml``; what older releases lacked: ``devices/known/history.toml``.
    """
    from assay.quantize.planning.plan_builder import PlanRequest, build_plan

    return build_plan(model, PlanRequest(scheme, device, recipe, dtype, include, exclude, method, release))
