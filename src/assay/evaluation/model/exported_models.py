"""Exported and scripted models as modules that the loop can run: any number of rows, either mode, any device."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram

from assay.errors import ConfigError, DtypeError, describe
from assay.evaluation.model.fixed_rows import in_parts, rows_of


class ExportedModel(nn.Module):
    """What `torch.export` made, as a module.

    A program may demand a number of rows: as many as its example had, where the batch dimension was not exported as
    dynamic. Smaller batches are filled up with copies of their last row, whose outputs are dropped, and larger ones are
    run in parts. Rows of a program in evaluation mode do not depend on each other, so every sample still gets its own
    outputs, once.

    Args:
        program: the program.

    Attributes:
        program: the program, on the device that it was moved to.
        least: the fewest rows that it takes.
        most: the most rows that it takes; None for any number.

    Raises:
        ShapeError: in use: batches without rows, or outputs that have not one row a sample.

    Example:
        >>> exported = torch.export.export(nn.Linear(4, 3).eval(), (torch.randn(8, 4),))
        >>> program = ExportedModel(exported)
        >>> program.least, program.most, program(torch.randn(11, 4)).shape
        (8, 8, torch.Size([11, 3]))
    """

    def __init__(self, program: ExportedProgram) -> None:
        super().__init__()
        self.program = program
        self.module = program.module()
        self.least, self.most = _rows(program)
        self.forward = _signed(self._run, list(inspect.signature(self.module.forward).parameters.values()))

    def train(self, mode: bool = True) -> ExportedModel:
        """Note the mode; a program has the one that it was exported in, and torch refuses to be asked for another."""
        self.training = mode
        return self

    def to(self, device: Any) -> ExportedModel:  # type: ignore[override]
        """Move it, with the devices that are written into its operators.

        Raises:
            DtypeError: it is asked for another dtype: that of a program is written into it.
        """
        if isinstance(device, torch.dtype):
            do = "Export the model in that dtype"
            raise DtypeError(describe("an exported program", f"to({device})", "a device", do))
        from torch.export.passes import move_to_device_pass

        self.program = move_to_device_pass(self.program, str(torch.device(device)))
        self.module = self.program.module()
        return self

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        if self.least <= 1 and self.most is None:
            return self.module(*args, **kwargs)
        inputs = (args, kwargs)
        rows = rows_of(inputs, "Export the model with a dynamic batch dimension")
        if self.least <= rows and (self.most is None or rows <= self.most):
            return self.module(*args, **kwargs)
        return in_parts(self.module, inputs, rows, self.most or rows, self.least)


class ScriptedModel(nn.Module):
    """A TorchScript model as a module that says which names it takes, as Python's functions do.

    Args:
        script: the model.
    """

    def __init__(self, script: Any) -> None:
        super().__init__()
        self.module = script
        self.forward = _signed(self._run, [_parameter(each) for each in script.forward.schema.arguments[1:]])

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


def as_model(model: Any) -> Any:
    """A model that the loop can run; exported programs and TorchScript are wrapped, others are returned unchanged.

    Raises:
        ConfigError: it is nothing that can be called with a batch.
    """
    if isinstance(model, ExportedProgram):
        return ExportedModel(model)
    if isinstance(model, type) or not callable(model):
        got = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        got = f"{model!r:.80}" if model is None or isinstance(model, str) else got
        do = "Pass the model first, then data and metrics"
        if isinstance(model, type):
            do = f"Make the model: {model.__name__}(...)"
        elif hasattr(model, "get_params"):
            do = "Pass an estimator that predicts"
        raise ConfigError(describe("model", got, "a module, an exported program or a function", do))
    return ScriptedModel(model) if isinstance(model, torch.jit.ScriptModule) else model


def _rows(program: ExportedProgram) -> tuple[int, int | None]:
    """The fewest and the most rows that a program takes, from the first dimension of its first input that has one."""
    wanted = set(program.graph_signature.user_inputs)
    for node in program.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or node.name not in wanted or not isinstance(value, Tensor) or not value.ndim:
            continue
        size: Any = value.shape[0]
        if isinstance(size, int):
            return size, size
        limits = program.range_constraints.get(size.node.expr)
        if limits is None:  # an expression such as 2 * s: what it allows is known when it runs
            return 1, None
        least, most = (int(end) if end.is_Integer else None for end in (limits.lower, limits.upper))
        return (least if least is not None and least > 2 else 1), most  # 2 is where torch starts, and takes 1, too
    return 1, None


def _signed(run: Callable[..., Any], parameters: list[inspect.Parameter]) -> Callable[..., Any]:
    """A function that shows parameters of another, so that batches with names can be passed to them."""

    def forward(*args: Any, **kwargs: Any) -> Any:
        return run(*args, **kwargs)

    forward.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return forward


def _parameter(argument: Any) -> inspect.Parameter:
    default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
    return inspect.Parameter(argument.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
