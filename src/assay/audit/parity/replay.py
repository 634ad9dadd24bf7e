"""The device's run, compared with the CPU's step by step."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from assay._records import Record
from assay.audit.parity.align import Plan
from assay.audit.parity.closeness import (
    Tolerance,
    ValueDifference,
    difference,
    error_against,
    on_host,
    same_bits,
    tolerance_of,
)
from assay.audit.parity.steps import (
    Argument,
    Call,
    CallSite,
    OperatorStep,
    is_random,
    is_written,
    memory,
    operands_of,
    shapes,
)
from assay.devices.operators.overloads import operator_name
from assay.devices.placement import has_values
from assay.pretend.events import Frame
from assay.render.text import first_names

KINDS = {
    "value": "an operator gives other values than on the CPU",
    "shape": "an operator gives another shape than on the CPU",
    "operand": "values changed between two operators: in a view, in a copy between devices, or outside torch",
    "error": "the run on the device failed",
    "result": "what the program returned differs",
    "operator": "other operators ran than on the CPU",
    "dtype": "an operator gives another dtype than on the CPU",
}
NOTES = ("operator", "dtype")  # no divergence, as long as the values agree


Operands = tuple[Argument, ...]


class OperatorDivergence(Record):
    """One place at which the device's run leaves the CPU's.

    Attributes:
        kind: one of :data:`KINDS`.
        operator: torch's name of the operator with its overload; empty where none is to blame.
        step: the operator's number in the CPU's run, from 0.
        why: what happened.
        file: the file of the line of Python; empty where no line is known.
        line: its number.
        module: the path of the innermost ``nn.Module``, such as ``"Net.layers.0"``; empty outside of modules.
        backward: whether autograd ran it; the line is then that of its forward operator.
        difference: the values, where there are two to compare.
        count: how often it happened at this place; what is reported is the first time.
    """

    kind: str
    operator: str
    step: int
    why: str
    file: str = ""
    line: int = 0
    module: str = ""
    backward: bool = False
    difference: ValueDifference | None = None
    count: int = 1

    @property
    def place(self) -> str:
        """The line, the module, and whether it was in backward, in words."""
        return str(CallSite(Frame(self.file, self.line, "") if self.file else None, self.module, self.backward))

    def __str__(self) -> str:
        at = f"{self.operator} at {self.place}" if self.operator else f"{self.kind} at {self.place}"
        return f"{at}: {self.why}"


@dataclass
class Divergences:
    """The divergences so far, one for each place."""

    by_place: dict[tuple[Any, ...], OperatorDivergence] = field(default_factory=dict)

    def add(
        self, kind: str, operator: str, step: int, place: CallSite, why: str, apart: ValueDifference | None = None
    ) -> None:
        """Note a divergence, or one more of the same place."""
        key = (kind, operator, place)
        if known := self.by_place.get(key):
            self.by_place[key] = replace(known, count=known.count + 1)
            return
        where = (place.line.file, place.line.line) if place.line else ("", 0)
        self.by_place[key] = OperatorDivergence(kind, operator, step, why, *where, place.module, place.backward, apart)


# The output that only the operator's backward can read: bytes, some of which are never written.
WORKSPACES = {"mkldnn_rnn_layer": 3}
_STRAY = 64  # calls by which two runs of the device may differ, as threads of autograd come and go


class Replay:
    """Runs a program on the device beside the steps that the CPU took.

    Args:
        steps: the CPU's run.
        mode: ``"lockstep"``: every operator is given the CPU's operands; ``"free"``: its own.
        plan: the calls that the device is known to make, each with the CPU's step that it stands for, from
            :func:`align`; without one they are taken in order until the first that differs, and then only listened to.
        allowed: a tolerance instead of that of the dtypes.
        unseen: a context in which a pretend device records nothing, for looking at values.
    """

    def __init__(
        self,
        steps: list[OperatorStep],
        mode: Literal["lockstep", "free"],
        plan: Plan | None = None,
        allowed: Tolerance | None = None,
        unseen: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.divergences = Divergences()
        self.calls: list[Call] = []
        self.compared = 0
        self.random = 0
        self.results = 0
        self.position = 0
        self.unseen = unseen
        self._steps, self._plan, self._lockstep, self._allowed = steps, plan, mode == "lockstep", allowed
        self._failed: tuple[str, CallSite, BaseException] | None = None
        self._at = 0  # in the plan
        self._others: list[Call] = []  # what the device ran since the last common step, and the CPU did not
        self._lately = ""  # the same of the last such place
        self._drawn: dict[Any, Any] = {}  # the device's own random numbers, and what was made from them

    @property
    def in_step(self) -> bool:
        """Whether the device ran the CPU's operators and no others."""
        return [call.same for call in self.calls] == [step.call.same for step in self._steps]

    def step(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], place: CallSite) -> Any:
        """Run one operator on the device and compare; in lockstep, with the CPU's operands."""
        operands = operands_of(func, args, kwargs)
        step = self._match(Call(operator_name(func), place, shapes(operands), is_random(func, operands)))
        if step is None:
            return self._alone(func, args, kwargs, operands)
        with self.unseen():
            self._note_others(step.index)
            self._take_over(step, operands, place)
        self.position = step.index + 1
        result = self._call(func, args, kwargs, place)
        with self.unseen():
            return self._compare(step, operands, result, place)

    def finish(self) -> None:
        """The device's run is over: what the CPU did beyond it is a difference, too."""
        self._note_others(len(self._steps))

    def blamed(self, error: BaseException) -> tuple[str, CallSite] | None:
        """The operator that raised an error or the cause of it, and its place; ``None`` if none did."""
        if self._failed is None:
            return None
        operator, place, raised = self._failed
        cause: BaseException | None = error
        while cause is not None and cause is not raised:
            cause = cause.__cause__ or cause.__context__
        return (operator, place) if cause is raised else None

    def _match(self, call: Call) -> OperatorStep | None:
        """The CPU's step that a call stands for."""
        at = len(self.calls)
        self.calls.append(call)
        if self._plan is not None:
            return self._planned(call)
        step = self._steps[at] if at == self.position < len(self._steps) else None
        return step if step and step.call.same == call.same else None

    def _planned(self, call: Call) -> OperatorStep | None:
        assert self._plan is not None
        for at, (expected, index) in enumerate(self._plan[self._at : self._at + _STRAY], self._at):
            if expected == call:
                self._at = at + 1
                return self._steps[index] if index is not None and index >= self.position else None
        return None

    def _call(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], place: CallSite) -> Any:
        try:
            return func(*args, **kwargs)
        except Exception as error:
            self._failed = (operator_name(func), place, error)
            raise

    def _alone(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], operands: Operands) -> Any:
        """Run an operator that the CPU did not run. What it draws, and makes of what was drawn, cannot be compared."""
        call = self.calls[-1]
        self._others.append(call)
        result = self._call(func, args, kwargs, call.place)
        if call.random or any(self.is_drawn(operand.value) for operand in operands):
            for leaf in (*tree_leaves(result), *(operand.value for operand in operands if is_written(operand))):
                self._drawn[_key(leaf)] = leaf  # kept, so that its memory is not given to another
        return result

    def is_drawn(self, value: Any) -> bool:
        """Whether a value comes from random numbers that the device drew in an operator which the CPU did not run."""
        return bool(self._drawn) and isinstance(value, Tensor | float | int) and _key(value) in self._drawn

    def _note_others(self, index: int) -> None:
        """The device caught up with the CPU's step ``index``: note what either ran meanwhile and the other did not."""
        skipped = [step.call for step in self._steps[self.position : index]]
        ours, self._others = self._others, []
        if not (ours or skipped):
            return
        self._lately = f"where the CPU ran {_call_names(skipped)} and the device ran {_call_names(ours)}"
        first = (ours or skipped)[0]
        self.divergences.add("operator", first.name, self.position, first.place, self._lately)

    def _take_over(self, step: OperatorStep, operands: Operands, place: CallSite) -> None:
        """Give the operator the CPU's operands. Where they differ already, no step is to blame, and that is noted."""
        for ours, theirs in zip(operands, step.inputs, strict=False):
            drawn = self.is_drawn(ours.value)
            if not (self._lockstep or drawn) or not _comparable(ours.value, theirs.value):
                continue
            if same_bits(theirs.value, on_host(ours.value)):
                continue
            apart = None if drawn else difference(theirs.value, ours.value, self._allowed)
            if apart is not None:
                blamed = self._lately or "though no operator before it diverged"
                why = f"its operand {ours.name} arrives with other values than on the CPU, {blamed}. {apart}"
                self.divergences.add("operand", step.name, step.index, place, why, apart)
            _overwrite(ours.value, theirs.value)

    def _compare(self, step: OperatorStep, operands: Operands, result: Any, place: CallSite) -> Any:
        leaves, spec = tree_flatten(result)
        changed = [operand.value for operand in operands if is_written(operand)]
        if step.call.random:
            self.random += 1
        else:
            self.compared += 1
            pairs = zip((*step.outputs, *step.written), (*leaves, *changed), strict=False)
            opaque = WORKSPACES.get(step.func.overloadpacket.__name__)
            for at, (cpu, device) in enumerate(pairs):
                if at != opaque and self._compare_one(step, cpu, device, place):
                    break
        if not (self._lockstep or step.call.random):
            return result
        for cpu, device in zip(step.written, changed, strict=False):
            _agree(cpu, device)
        outputs = [_agree(cpu, device) for cpu, device in zip(step.outputs, leaves, strict=False)]
        return tree_unflatten(outputs, spec) if len(outputs) == len(leaves) else result

    def _compare_one(self, step: OperatorStep, cpu: Any, device: Any, place: CallSite) -> bool:
        """Compare one output; whether it differs."""
        allowed = self._allowed
        if not isinstance(cpu, Tensor):
            cpu, device, allowed = _as_tensors(cpu, device, step, allowed)
        if not isinstance(cpu, Tensor) or not isinstance(device, Tensor) or not has_values(cpu):
            return False
        if cpu.shape != device.shape:
            why = f"shape {tuple(cpu.shape)} on the CPU, {tuple(device.shape)} on the device"
            self.divergences.add("shape", step.name, step.index, place, why)
            return True
        apart = difference(cpu, device, allowed)
        dtypes = "" if cpu.dtype == device.dtype else f"{cpu.dtype} on the CPU, {device.dtype} on the device"
        if apart is None:
            if dtypes:
                self.divergences.add("dtype", step.name, step.index, place, dtypes)
            return False
        apart = replace(apart, errors=_errors(step, cpu, device) if self._lockstep else None)
        why = f"{apart}{_verdict(apart)}{dtypes and '; ' + dtypes}"
        self.divergences.add("value", step.name, step.index, place, why, apart)
        return True


def _key(value: Any) -> Any:
    """What tells a value from others: its memory, or for a number itself."""
    return memory(value) if isinstance(value, Tensor) else ("number", value)


def _comparable(device: Any, cpu: Any) -> bool:
    if not (isinstance(device, Tensor) and isinstance(cpu, Tensor)):
        return False
    return device.shape == cpu.shape and has_values(device) and has_values(cpu)


def _agree(cpu: Any, device: Any) -> Any:
    """The device's output with the CPU's value."""
    if not isinstance(device, Tensor):
        return cpu if type(cpu) is type(device) else device
    if _comparable(device, cpu) and not same_bits(cpu, on_host(device)):
        _overwrite(device, cpu)
    return device


def _overwrite(device: Tensor, cpu: Tensor) -> None:
    """Write values into a tensor of the device, once where several of its elements share memory (after expand)."""
    if device.layout is not torch.strided:
        return
    for axis, stride in enumerate(device.stride()):
        if stride == 0 and device.shape[axis] > 1:
            device, cpu = device.narrow(axis, 0, 1), cpu.narrow(axis, 0, 1)
    with suppress(RuntimeError):  # as_strided may overlap in other ways; then the device keeps its own values
        device.copy_(cpu)


def _as_tensors(
    cpu: Any, device: Any, step: OperatorStep, allowed: Tolerance | None
) -> tuple[Any, Any, Tolerance | None]:
    """Numbers that an operator read from the device, judged by the dtype that they were read from."""
    if not (isinstance(cpu, int | float | complex) and isinstance(device, int | float | complex)):
        return cpu, device, allowed
    dtypes = [operand.value.dtype for operand in step.inputs if isinstance(operand.value, Tensor)]
    return (
        torch.tensor(cpu, device="cpu"),
        torch.tensor(device, device="cpu"),
        allowed or (tolerance_of(*dtypes) if dtypes else None),
    )


def _errors(step: OperatorStep, cpu: Tensor, device: Tensor) -> tuple[float, float] | None:
    """How far the two are from the same operator in float64, on the CPU; ``None`` where it does not take float64."""
    if not cpu.dtype.is_floating_point or cpu.dtype == torch.float64:
        return None
    try:
        reference = _in_float64(step)
    except Exception:  # operators raise anything for operands they do not take
        return None
    at = next((at for at, out in enumerate(step.outputs) if out is cpu), len(reference))
    exact = reference[at] if at < len(reference) else None
    if not isinstance(exact, Tensor) or exact.shape != cpu.shape or not exact.is_floating_point():
        return None
    return error_against(exact, cpu), error_against(exact, device)


def _in_float64(step: OperatorStep) -> list[Any]:
    values = iter(step.inputs)

    def wide(shell: Any) -> Any:
        value = next(values).value
        if isinstance(value, Tensor):
            return value.double() if value.is_floating_point() else value.clone()
        return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else shell

    args, kwargs = tree_map(wide, (step.args, step.kwargs))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(tree_leaves(step.func(*args, **kwargs)))


def _verdict(apart: ValueDifference) -> str:
    if not apart.nearer or apart.errors is None:
        return ""
    near, other = ("device", "CPU") if apart.nearer == "device" else ("CPU", "device")
    low, high = sorted(apart.errors)
    return f". The {near} is nearer to float64: {low:.3g} away, the {other} {high:.3g}"


def _call_names(calls: list[Call]) -> str:
    return first_names(dict.fromkeys(call.name for call in calls), 4) or "nothing"
