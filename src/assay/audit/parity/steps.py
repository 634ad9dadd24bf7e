"""What a run computed, operator by operator; the CPU's run is written down, to compare a device with it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from traceback import walk_tb
from types import TracebackType
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from assay.audit.parity.closeness import same_bits
from assay.devices.operators.overloads import operator_name
from assay.devices.placement import has_values
from assay.errors import CapacityError, InputError, describe
from assay.pretend.events import Frame, stack

# They compute nothing, and a device may need others of them than the CPU: no step. Nor are views, which have no values
# of their own; a wrong one shows in the operands of the next step.
EMPTY = frozenset(("empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"))
ALLOCATIONS = EMPTY | {"resize_", "resize_as_"}
BOOKKEEPING = frozenset(
    ("_pin_memory", "pin_memory", "is_pinned", "record_stream", "_fused_sdp_choice", "set_", "lift")
)
_HERE = str(Path(__file__).parent) + "/"


@dataclass(frozen=True)
class CallSite:
    """Where in the user's program an operator ran.

    Attributes:
        line: the innermost line outside torch; for an operator of backward that of its forward operator.
        module: the path of the innermost ``nn.Module``, such as ``"Net.layers.0"``; empty outside of modules.
        backward: whether autograd ran it.
    """

    line: Frame | None = None
    module: str = ""
    backward: bool = False

    def __str__(self) -> str:
        words = (
            str(self.line) if self.line else "",
            f"in {self.module}" if self.module else "",
            "in its backward" if self.backward else "",
        )
        return " ".join(word for word in words if word) or "no line of Python"


@dataclass(frozen=True)
class Argument:
    """One argument of an operator; ``written`` where the operator changes it."""

    name: str
    value: Any
    written: bool


@dataclass(frozen=True)
class Call:
    """One call of an operator, without its values."""

    name: str  # torch's name of the operator with its overload
    place: CallSite  # where it ran
    shapes: tuple[torch.Size, ...]  # the shapes of the operands that are tensors
    random: bool  # whether it draws random numbers

    @property
    def same(self) -> tuple[str, CallSite]:
        """What two runs have in common where they run the same: the shapes are then compared."""
        return self.name, self.place


@dataclass(frozen=True)
class OperatorStep:
    """One operator that the CPU ran: what it was given, what came out, and what it left in what it changed."""

    index: int
    call: Call
    func: OpOverload
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: tuple[Argument, ...]
    outputs: tuple[Any, ...]
    written: tuple[Tensor, ...]

    @property
    def name(self) -> str:
        """torch's name of the operator with its overload."""
        return self.call.name


def line_of(error: BaseException) -> Frame | None:
    """The innermost line outside torch that an error came through."""
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        file = frame.f_code.co_filename
        outside = stack(frame, limit=1)
        if outside and outside[0].file == file and not file.startswith(_HERE):
            return Frame(file, line, frame.f_code.co_qualname)
    return None


def shapes(operands: tuple[Argument, ...]) -> tuple[torch.Size, ...]:
    """The shapes of those operands that are tensors."""
    return tuple(operand.value.shape for operand in operands if isinstance(operand.value, Tensor))


def operands_of(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Argument, ...]:
    """The arguments of a call, lists of tensors taken apart."""
    arguments = func._schema.arguments
    named = {argument.name: argument for argument in arguments}
    pairs = [*zip(arguments, args, strict=False), *((named[name], value) for name, value in kwargs.items())]
    return tuple(
        Argument(argument.name, leaf, argument.alias_info is not None and argument.alias_info.is_write)
        for argument, value in pairs
        for leaf in tree_leaves(value)
    )


def is_step(func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an operator computes values: no view, no allocation, no copy that only changes the device."""
    name = func.overloadpacket.__name__
    if func.namespace == "profiler" or name in BOOKKEEPING or name in ALLOCATIONS:
        return False
    if name in ("copy_", "clone") and _keeps_a_gradient():
        return False
    if any(result.alias_info is not None and not result.alias_info.is_write for result in func._schema.returns):
        return False  # a view
    return name != "_to_copy" or kwargs.get("dtype") not in (None, args[0].dtype)


def _keeps_a_gradient() -> bool:
    """Whether autograd copies a gradient into ``.grad``; it does not where nobody else holds it, which is a matter of
    moments: torch/csrc/autograd/functions/accumulate_grad.h.
    """
    node: Any = torch._C._current_autograd_node()
    return node is not None and "AccumulateGrad" in node.name()


def is_random(func: OpOverload, operands: tuple[Argument, ...]) -> bool:
    """Whether an operator draws random numbers; one with dropout does not where its probability is zero."""
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    return not any(operand.name in ("dropout_p", "dropout") and operand.value == 0 for operand in operands)


RunStep = Callable[[OpOverload, tuple[Any, ...], dict[str, Any], CallSite], Any]


class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is open, every step goes through ``run``, which runs the operator and returns the result."""

    def __init__(self, run: RunStep) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run = run
        self._modules = _Modules()
        self._forward: dict[int, CallSite] = {}

    def __enter__(self) -> Watch:
        self._modules.watch()
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)  # type: ignore[no-untyped-call]
        self._modules.forget()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, OpOverload):
            return func(*args, **kwargs)
        if is_step(func, args, kwargs):
            return self._run(func, args, kwargs, self._place())
        result = func(*args, **kwargs)
        if func.overloadpacket.__name__ in ALLOCATIONS:
            _clear(result)
        return result

    def _place(self) -> CallSite:
        """Where we are. An operator of backward is placed where its forward operator was: they share a number."""
        lines = stack(sys._getframe(2))
        line = next((line for line in lines if not line.file.startswith(_HERE)), None)
        node: Any = torch._C._current_autograd_node()
        if node is not None:
            forward = self._forward.get(node._sequence_nr(), CallSite())
            return CallSite(forward.line, forward.module, backward=True)
        place = CallSite(line, self._modules.innermost)
        # autograd makes the node first and then calls the operator, so the newest number is this operator's
        self._forward.setdefault(torch._C._autograd._get_sequence_nr() - 1, place)
        return place


class Recording:
    """The CPU's run: every step with copies of its inputs and outputs, of at most ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self.steps: list[OperatorStep] = []
        self._limit = limit
        self._bytes = 0
        self._newest: dict[tuple[Any, ...], Tensor] = {}

    def step(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], place: CallSite) -> Any:
        """Run one operator on the CPU and keep what it did."""
        operands = operands_of(func, args, kwargs)
        before = tuple(Argument(operand.name, self._keep(operand.value), operand.written) for operand in operands)
        result = func(*args, **kwargs)
        outputs = tuple(self._keep(leaf) for leaf in tree_leaves(result))
        written = tuple(self._keep(operand.value) for operand in operands if is_written(operand))
        call = Call(operator_name(func), place, shapes(operands), is_random(func, operands))
        self.steps.append(
            OperatorStep(len(self.steps), call, func, _shell(args), _shell(kwargs), before, outputs, written)
        )
        return result

    def _keep(self, value: Any) -> Any:
        """A copy of a tensor; the last one made of this memory if its values are still those."""
        if not isinstance(value, Tensor) or not has_values(value):
            return value
        if value.device != torch.device("cpu"):
            do = "Let the program take its device as an argument: a function audit(device), or inputs given to compare"
            got = f"a tensor on {value.device}"
            raise InputError(describe("the run on the CPU", got, "tensors on the CPU only", do))
        stride = value.stride() if value.layout is torch.strided else ()
        key = (memory(value), stride, value.shape, value.dtype)
        newest = self._newest.get(key)
        if newest is not None and same_bits(newest, value):
            return newest
        self._newest[key] = copied = value.detach().clone()
        self._bytes += copied.numel() * copied.element_size()
        if self._bytes > self._limit:
            got = f"more than {self._limit / 2**30:.3g} GiB of values after {len(self.steps)} operators"
            expected = "at most that, since every operator's values are kept until the device's run"
            do = "Pass a smaller batch or fewer steps, or a larger limit="
            raise CapacityError(describe("the run on the CPU", got, expected, do))
        return copied


def is_written(operand: Argument) -> bool:
    """Whether an operand is a tensor that its operator changes."""
    return operand.written and isinstance(operand.value, Tensor)


class _Modules:
    """Which ``nn.Module`` runs now, by its path from the outermost one."""

    def __init__(self) -> None:
        self._names: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()
        self._running: list[str] = []
        self._hooks: list[Any] = []

    @property
    def innermost(self) -> str:
        return self._running[-1] if self._running else ""

    def watch(self) -> None:
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        self._hooks = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]

    def forget(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def _enter(self, module: nn.Module, _inputs: Any) -> None:
        if module not in self._names:
            root = type(module).__name__
            for path, part in module.named_modules():
                self._names.setdefault(part, f"{root}.{path}" if path else root)
        self._running.append(self._names[module])

    def _leave(self, _module: nn.Module, _inputs: Any, _output: Any) -> None:
        if self._running:
            self._running.pop()


def _clear(result: Any) -> None:
    """Zeros in new memory: what nobody wrote there would differ between two runs, and say nothing about the device."""
    for leaf in tree_leaves(result):
        if isinstance(leaf, Tensor) and has_values(leaf) and not leaf.is_quantized:
            leaf.zero_()


def _shell(tree: Any) -> Any:
    """Arguments without their tensors, whose copies stand in the step."""
    return tree_map_only(Tensor, lambda _: None, tree)


def memory(tensor: Tensor) -> int:
    """What tells the memory of a tensor from that of others that live."""
    try:
        return tensor.data_ptr() or id(tensor)
    except (RuntimeError, NotImplementedError):  # sparse tensors, and subclasses, have none
        return id(tensor)
