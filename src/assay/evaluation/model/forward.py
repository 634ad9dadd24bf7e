"""One step: a batch goes to the device, through the model, and comes back as predictions and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from assay.devices.assign import DeviceAssignment
from assay.devices.modules import evaluation_mode, in_training_mode, locations, on_device
from assay.devices.placement import move
from assay.devices.policies import can_hold
from assay.errors import AssayWarning, ConfigError, describe, warn
from assay.evaluation.data.batch import Arguments, Reader, as_column
from assay.evaluation.data.pictures import find_image
from assay.evaluation.model.prediction_sample import PredictionSample
from assay.evaluation.nested_batch import mapped
from assay.evaluation.processes.guard import CommunicationGuard
from assay.evaluation.processes.outputs import Outputs

PRECISIONS = {"float32": None, "bfloat16": torch.bfloat16, "float16": torch.float16}
_META = torch.device("meta")
_NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}


class Predicted(NamedTuple):
    """What `Meter.arguments` takes: the predictions of a batch and what they are compared with."""

    preds: Any
    target: Any
    weights: Tensor | None
    columns: Mapping[str, Tensor]

    @property
    def rows(self) -> int:
        """How many samples there are."""
        if not isinstance(self.preds, Tensor):
            return len(self.preds)
        shape = self.preds.shape
        return shape[0] if shape else 1


class Forward:
    """Predicts a batch.

    Batch, outputs and targets follow one rule: inputs go to the device of the model, where dtypes that it lacks become
    narrower; predictions stay where the model gave them, and targets and weights meet them there. A target of a dtype
    that the device lacks is not rounded: then both meet on the CPU.

    Args:
        model: what predicts.
        reader: finds the parts of a batch.
        assigned: the device.
        precision: the dtype of autocast, as text; None for the model's own.

    Attributes:
        takes_images: whether the first batch had images; None before that.
        guarded: the first batch raises if it communicates with other processes.
        outputs: where other processes have parts of the model, and so of its outputs, makes plain tensors of them.
        sample: notes some of the inputs with their predictions; None where nothing is predicted again.
        stage: how far the last batch came: "before", "inside" or "behind" the model.

    Raises:
        ConfigError: there is no such precision, or not on this device.
    """

    def __init__(
        self, model: Callable[..., Any], reader: Reader, assigned: DeviceAssignment, precision: str | None = None
    ) -> None:
        self._model, self._reader, self.device = model, reader, assigned.device.value
        self._dtype = autocast_dtype(precision, self.device)
        self._takes_tensors = isinstance(model, nn.Module)  # a function may take arrays of NumPy
        self._dtype_of_model = float_dtype(model) or torch.float64
        self.takes_images: bool | None = None
        self.outputs = Outputs()
        self.sample: PredictionSample | None = None
        self._last: tuple[Arguments, Any] | None = None
        self.guarded = False
        self.stage = "before"
        self.narrowed: set[torch.dtype] = set()
        self.on_host: set[torch.dtype] = set()

    def __call__(self, batch: Any) -> Predicted:
        """The predictions, the target, the weights and the columns of a batch, on one device."""
        self.stage = "before"
        (args, kwargs), target, weights = self._reader.read(batch)
        is_first = self.takes_images is None
        if is_first:
            self.takes_images = find_image((args, kwargs)) is not None
            had_no_mode = in_training_mode(self._model)  # programs that torch exported have none
        outputs = self._outputs(args, kwargs)
        if is_first:
            _check_mode(self._model, had_no_mode)
        preds = self._reader.preds(outputs)
        if self.outputs.members:
            preds = mapped(preds, self.outputs)
        if self.sample is not None:
            self._last = (args, kwargs), preds
        if target is not None and not self._reader.raw:
            if type(target) is not Tensor:
                target = as_column(target, "target")
            if target.device != preds.device:
                preds, target = self._met(preds, target)
        home = "cpu" if self._reader.raw else preds.device
        if weights is not None:
            weights = move(as_column(weights, "weights"), home)
        return Predicted(preds, target, weights, self._columns(batch, home) if self._reader.has_columns else {})

    def _columns(self, batch: Any, home: str | torch.device) -> Mapping[str, Tensor]:
        """The named columns of a batch, on the device of the predictions."""
        columns = self._reader.columns(batch)
        if not self._reader.raw:  # else a function may take lists
            columns = {name: as_column(column, name) for name, column in columns.items()}
        moved: Mapping[str, Tensor] = move(columns, home)
        return moved

    def note_sample(self, ids: Sequence[int | str]) -> None:
        """Note the last batch, which was counted, where some of the samples are predicted again."""
        if self.sample is not None and self._last is not None:
            self.sample.note(*self._last, ids)
            self._last = None

    def outputs_of(self, arguments: Arguments) -> Any:
        """What the model gives for arguments that are where data sets have them."""
        args, kwargs = arguments
        return self._outputs(args, kwargs)

    def repeat(self, batch: Any) -> None:
        """Call the model with a batch, as other processes call it, and throw its outputs away."""
        (args, kwargs), _, _ = self._reader.read(batch)
        self._outputs(args, kwargs)

    def _outputs(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if len(args) != 1 or kwargs or type(args[0]) is not Tensor or args[0].device != self.device:
            args, kwargs = move(mapped((args, kwargs), self._on_device_dtype), self.device)
        self.stage = "inside"
        is_plain = self._dtype is None and not self.guarded
        outputs = self._model(*args, **kwargs) if is_plain else self._run(args, kwargs)
        self.stage = "behind"
        return outputs

    def _run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The outputs under autocast, or while nothing may communicate with other processes."""
        guard, self.guarded = _guard() if self.guarded else nullcontext(), False
        if self._dtype is None:
            with guard:
                return self._model(*args, **kwargs)
        with guard, torch.autocast(self.device.type, dtype=self._dtype):
            return self._model(*args, **kwargs)

    def _on_device_dtype(self, leaf: Any) -> Any:
        if self._takes_tensors and isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc":
            tensor = torch.as_tensor(leaf, device="cpu")
            leaf = tensor.to(self._dtype_of_model) if tensor.dtype == torch.float64 else tensor
        if not isinstance(leaf, Tensor) or leaf.dtype not in _NARROWER or can_hold(self.device, leaf.dtype):
            return leaf
        self.narrowed.add(leaf.dtype)
        return leaf.to(_NARROWER[leaf.dtype])

    def _met(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if can_hold(preds.device, target.dtype):
            return preds, move(target, preds.device)
        self.on_host.add(target.dtype)
        return move(preds, "cpu"), move(target, "cpu")


def _guard() -> AbstractContextManager[Any]:
    guard: AbstractContextManager[Any] = CommunicationGuard()  # type: ignore[no-untyped-call]
    return guard


def float_dtype(model: Any) -> torch.dtype | None:
    """The dtype of the first parameter of a module that is a float; None for anything else."""
    if not isinstance(model, nn.Module):
        return None
    return next((each.dtype for each in model.parameters() if each.is_floating_point()), None)


def _check_mode(model: Any, except_for: Sequence[str]) -> None:
    """Warn where a model put itself back into training mode."""
    names = [name for name in in_training_mode(model) if name not in except_for]
    if names:
        first = f"{names[0]!r}" if names[0] else "the model itself"
        got = f"{len(names):,} modules in training mode after the first batch, such as {first}"
        do = "Remove the call of train() in forward, unless dropout and batch norm are to be measured in training mode"
        warn(describe("model", got, "evaluation mode, in which it was called", do), AssayWarning)


@contextmanager
def ready(model: Any, device: torch.device) -> Iterator[None]:
    """A model in evaluation mode and on a device, and afterwards as and where it was, also after an error.

    One whose weights Accelerate has offloaded stays where it is: its hooks load them while it runs.

    Raises:
        ConfigError: its weights have no values.
    """
    is_moved = locations(model) != {_META}
    if not is_moved and not any("_hf_hook" in vars(each) for each in model.modules()):
        do = "Load the weights (to_empty and load_state_dict), or dispatch the model with Accelerate"
        raise ConfigError(describe("model", "weights without values (device meta)", "weights that are loaded", do))
    with evaluation_mode(model), on_device(model, device) if is_moved else nullcontext():
        yield


def homes(model: Any) -> set[torch.device]:
    """The devices where a model has values."""
    return locations(model) - {_META}


def autocast_dtype(precision: str | None, device: torch.device) -> torch.dtype | None:
    """The dtype of autocast for a precision; None for the model's own.

    Raises:
        ConfigError: there is no such precision, or not on this device.
    """
    if precision is None:
        return None
    if precision not in PRECISIONS:
        do = "Leave precision out to run the model in its own dtype"
        raise ConfigError(describe("precision", repr(precision), f"one of {', '.join(PRECISIONS)}", do))
    dtype = PRECISIONS[precision]
    if dtype is not None and not torch.amp.is_autocast_available(device.type):
        do = "Leave precision out, or convert the model"
        raise ConfigError(describe("precision", f"{precision} on {device}", "a device that has autocast", do))
    return dtype
