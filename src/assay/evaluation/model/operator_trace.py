"""Every operator that a model runs for one sample, and the first whose result differs between two runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from assay.devices.placement import to_host
from assay.evaluation.model.every_module import every_module
from assay.evaluation.model.output_gap import gap_between, spacing

RANDOM = ("rand", "bernoulli", "normal", "uniform", "multinomial", "native_dropout", "exponential", "poisson", "rrelu")
_UNINITIALIZED = ("empty", "new_empty", "empty_like", "empty_strided", "detach")
_LARGEST = 1 << 22  # numbers of a value without a row a sample: longer ones are not kept


@dataclass(frozen=True)
class TracedOperator:
    """What one operator, or one module, gave for a sample.

    Attributes:
        name: of the operator, such as ``mean``; empty for a module.
        module: the innermost module that it ran in.
        dtype: of its result.
        value: the part of the sample in it, or all of it where it has no row a sample; None where it was not kept.
    """

    name: str
    module: str
    dtype: torch.dtype
    value: Tensor | None


@dataclass(frozen=True)
class FirstDifference:
    """The first operator whose results differ.

    Attributes:
        name: of the operator; empty where all that is known is the module.
        module: the innermost module that it ran in; empty for the model itself.
        kind: ``"value"``, ``"dtype"``, or ``"operators"`` where other operators ran.
    """

    name: str
    module: str
    kind: str

    @property
    def is_random(self) -> bool:
        """Whether the operator draws random numbers."""
        return self.name.startswith(RANDOM)

    def __str__(self) -> str:
        """Where it is, in words."""
        where = f"in {self.module!r}" if self.module else "in the model's own forward"
        return f"from {self.name} {where} on" if self.name else f"from {self.module or 'the model'} on"


class OperatorTrace(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes what every operator gives for one sample of a batch.

    Only what is computed from the inputs or drawn at random is noted, as weights have no row a sample.

    Args:
        model: whose modules are named.
        inputs: the tensors of the batch.
        rows: how many samples it has.
        at: the row of the sample.

    Attributes:
        operators: what was noted, in order.
        modules: the same of modules, by name and number of the call.
    """

    def __init__(self, model: Any, inputs: Any, rows: int, at: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._model, self._rows, self._at = model, rows, at
        self._of_inputs = {_storage(each) for each in tree_leaves(inputs) if isinstance(each, Tensor)}
        self._inside: list[str] = []
        self._is_paused = False
        self._calls: dict[str, int] = {}
        self.operators: list[TracedOperator] = []
        self.modules: dict[tuple[str, int], TracedOperator] = {}

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operator and note what it gives."""
        if self._is_paused:
            return func(*args, **(kwargs or {}))
        given = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        is_of_inputs = any(_storage(each) in self._of_inputs for each in given)
        result = func(*args, **(kwargs or {}))
        name = str(func.overloadpacket.__name__)
        for each in tree_leaves(result):
            if isinstance(each, Tensor):
                self._note(name, each, is_of_inputs)
        return result

    def _note(self, name: str, result: Tensor, is_of_inputs: bool) -> None:
        if not is_of_inputs:
            self._of_inputs.discard(_storage(result))  # memory that is used again
        if is_of_inputs:
            self._of_inputs.add(_storage(result))
        if (is_of_inputs or name.startswith(RANDOM)) and name not in _UNINITIALIZED:
            module = self._inside[-1] if self._inside else ""
            self.operators.append(TracedOperator(name, module, result.dtype, self._part(result)))

    def _part(self, result: Tensor) -> Tensor | None:
        rows, at = self._rows, self._at
        if result.layout != torch.strided or result.is_complex():
            return None
        if result.ndim and result.shape[0] and result.shape[0] % rows == 0:
            step = result.shape[0] // rows
            return to_host(result.detach()[at * step : (at + 1) * step]).clone()
        if result.ndim > 1 and result.shape[1] == rows:
            return to_host(result.detach()[:, at]).clone()
        return to_host(result.detach()).clone() if result.numel() <= _LARGEST else None

    def without_positions(self, length: int) -> OperatorTrace:
        """It without the values that have a dimension of so many positions, as those in the padding may differ."""

        def blanked(each: TracedOperator) -> TracedOperator:
            has_positions = each.value is not None and length in each.value.shape
            return replace(each, value=None) if has_positions else each

        self.operators = [blanked(each) for each in self.operators]
        self.modules = {key: blanked(each) for key, each in self.modules.items()}
        return self

    def as_dtype(self, wide: torch.dtype, dtype: torch.dtype) -> OperatorTrace:
        """It with results in one dtype called those of another, so that only values are compared."""

        def renamed(each: TracedOperator) -> TracedOperator:
            return replace(each, dtype=dtype) if each.dtype == wide else each

        self.operators = [renamed(each) for each in self.operators]
        self.modules = {key: renamed(each) for key, each in self.modules.items()}
        return self

    @contextmanager
    def named(self) -> Iterator[None]:
        """Know which module an operator runs in."""
        with ExitStack() as stack:
            for name, module in every_module(self._model).items():
                if isinstance(module, torch.jit.ScriptModule):
                    continue
                for handle in self._hooks(module, name):
                    stack.callback(handle.remove)
            yield

    def _hooks(self, module: nn.Module, name: str) -> tuple[Any, Any]:
        def enter(*_: Any) -> None:
            self._inside.append(name)

        def leave(_: nn.Module, __: Any, output: Any) -> None:
            if self._inside:
                self._inside.pop()
            call = self._calls[name] = self._calls.get(name, 0) + 1
            tensor = next((each for each in tree_leaves(output) if isinstance(each, Tensor)), None)
            if tensor is not None:
                self._is_paused = True
                self.modules[name, call] = TracedOperator("", name, tensor.dtype, self._part(tensor))
                self._is_paused = False

        return module.register_forward_pre_hook(enter), module.register_forward_hook(leave, always_call=True)


def traced(run: Callable[[Any], object], model: Any, arguments: Any, rows: int, at: int) -> OperatorTrace:
    """The trace of one call.

    Args:
        run: calls the model with arguments.
        model: the model.
        arguments: what it is given.
        rows: how many samples that are.
        at: the row of the sample.
    """
    trace = OperatorTrace(model, arguments, rows, at)
    with trace.named(), torch.no_grad(), trace:
        run(arguments)
    return trace


def first_difference(
    one: OperatorTrace, other: OperatorTrace, most_ulps: float, *, dtypes: bool = True
) -> FirstDifference | None:
    """The first operator, or else the first module, whose results differ by more than so many ulps.

    Args:
        one: the trace of a run.
        other: that of another run.
        most_ulps: what is not called a difference.
        dtypes: whether another dtype is a difference; else values are compared in ulps of the coarser dtype.
    """
    ours, theirs = ([(each.name, each.module) for each in trace.operators] for trace in (one, other))
    branch: FirstDifference | None = None  # other operators, as long as nothing after them agrees
    for tag, low, high, first, last in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        steps, others = one.operators[low:high], other.operators[first:last]
        if tag != "equal":
            branch = branch or _branch((steps or others)[0])
            continue
        for mine, its in zip(steps, others, strict=True):
            if kind := _difference(mine, its, most_ulps, dtypes):
                return branch or FirstDifference(mine.name, mine.module, kind)
            branch = None if _are_comparable(mine, its) else branch
    by_module = _first_module(one, other, most_ulps, dtypes)
    return branch if by_module is not None and branch is not None else by_module


def _branch(first: TracedOperator) -> FirstDifference:
    is_of_dtype = first.name == "_to_copy" and first.dtype.is_floating_point
    return FirstDifference(first.name, first.module, "dtype" if is_of_dtype else "operators")


def _are_comparable(one: TracedOperator, other: TracedOperator) -> bool:
    return one.value is not None and other.value is not None and one.value.shape == other.value.shape


def _first_module(one: OperatorTrace, other: OperatorTrace, most_ulps: float, dtypes: bool) -> FirstDifference | None:
    for key, first in one.modules.items():
        if key in other.modules and (kind := _difference(first, other.modules[key], most_ulps, dtypes)):
            return FirstDifference("", key[0], kind)
    return None


def _difference(first: TracedOperator, second: TracedOperator, most_ulps: float, dtypes: bool) -> str:
    if dtypes and first.dtype != second.dtype:
        return "dtype"
    one, other = first.value, second.value
    if one is None or other is None or one.shape != other.shape:
        return ""
    if first.dtype == second.dtype and torch.equal(one, other):
        return ""
    eps = max(spacing(first.dtype), spacing(second.dtype))
    eps = max(eps, spacing(torch.float32)) if most_ulps else eps
    gap = gap_between(one.reshape(1, -1), other.reshape(1, -1), eps)
    return "value" if gap.ulps > most_ulps else ""


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr() if tensor.layout == torch.strided else id(tensor)
