"""A plan: what happens to each layer of a model on a device, as a value that is printed before anything runs."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from assay.errors import ConfigError, StateError, describe
from assay.quantize.planning.layer_plan import LayerPlan, Others

if TYPE_CHECKING:
    from rich.console import Console
    from torch import nn

    from assay.quantize.planning.recipe import Recipe
    from assay.quantize.rounding import Calibration

FORM = 1
_DO = "Write it again with assay quantize --plan --json, or Plan.to_json"


@dataclass(frozen=True)
class Plan:
    """What happens to each layer of a model on a device; made by :func:`assay.quantize.plan`.

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
            >>> from assay.quantize import plan
            >>> made = plan(nn.Sequential(nn.Linear(256, 64)), "int8", device="cpu")
            >>> Plan.from_json(made.to_json()) == made
            True
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise StateError(describe(where, f"no JSON ({error})", "a plan", _DO)) from error
        if not isinstance(data, dict) or data.get("plan") != FORM:
            version = data.get("plan") if isinstance(data, dict) else type(data).__name__
            raise StateError(describe(where, f"plan: {version!r}", f"plan: {FORM}", _DO))
        try:
            result = cls._from_dict(data)
        except (KeyError, TypeError, ValueError, ConfigError) as error:
            got = f"a part that cannot be read ({type(error).__name__}: {error})"
            raise StateError(describe(where, got, "the fields of a plan", _DO)) from error
        if (again := json.loads(result.to_json())) != data:
            differing = [key for key, value in again.items() if data.get(key) != value]
            got = f"values that do not follow from the layers ({', '.join(differing) or 'further fields'})"
            raise StateError(describe(where, got, "the totals of its layers", _DO))
        return result

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Plan:
        return cls(
            layers=tuple(map(LayerPlan.from_dict, data["layers"])),
            others=tuple(Others(**each) for each in data["others"]),
            device=data["device"],
            dtype=data["dtype"],
            method=data["method"],
            torch=data["torch"],
            notes=tuple(data["notes"]),
        )

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
