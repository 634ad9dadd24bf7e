"""Checks for a block of code: that nothing in it synchronizes with the device, that no float64 appears there."""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from assay.devices.capabilities import device_type
from assay.devices.kinds import ACCELERATORS
from assay.devices.operators.conditions import applies
from assay.devices.operators.overloads import operator_name
from assay.devices.operators.rules import rules
from assay.pretend.events import Event, Frame, stack
from assay.pretend.session import current

if TYPE_CHECKING:
    from assay.pretend.session import PretendDevice

_WIDE = (torch.float64, torch.complex128)
_CPU = torch.device("cpu")
_STANDS_FOR = "cuda"  # whose rules apply to CPU tensors where no device is: it has the strictest sources


@dataclass(frozen=True)
class Violation:
    """One thing that a block must not do: the operator, the line, why, and whether only the CPU was involved."""

    operator: str
    line: Frame | None
    why: str
    on_host: bool = False


@dataclass
class Block:
    """What was seen in a block; CPU tensors stand for a device's, until one of a device is seen."""

    check: str
    violations: list[Violation] = field(default_factory=list)
    device: bool = False

    def judge(self) -> None:
        """Raise an AssertionError that names each operator and its line if anything was seen that counts."""
        __tracebackhide__ = True  # pytest: the line that matters is that of the test
        counted = [each for each in self.violations if not (each.on_host and self.device)]
        counts = Counter(replace(each, on_host=False) for each in counted)
        if counts:
            raise AssertionError("\n".join([f"{self.check}:", *(_text(each, n) for each, n in counts.items())]))


Look = Callable[[OpOverload, dict[str, Any], Any], str]


class _Watching(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Asks ``look`` about each operator: it answers why the operator must not be there, or nothing."""

    def __init__(self, block: Block, look: Look) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._block, self._look = block, look

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(func, OpOverload):
            names = [argument.name for argument in func._schema.arguments]
            arguments = dict(zip(names, args, strict=False)) | (kwargs or {})
            on_host = not any(tensor.device != _CPU for tensor in _tensors([list(arguments.values()), result]))
            self._block.device |= not on_host
            if why := self._look(func, arguments, result):
                line = next((line for line in stack(sys._getframe()) if line.file != __file__), None)
                self._block.violations.append(Violation(operator_name(func), line, why, on_host))
        return result


@contextmanager
def no_sync() -> Iterator[None]:
    """A block that must not synchronize with the device.

    It works on a pretend device, whose events decide, on a real one, and without any: as long as no tensor of a device
    is seen in the block, CPU tensors stand for them. Not seen on a real one: ``torch.cuda.synchronize()``; not on the
    CPU: copies between devices, ``tolist()`` and ``numpy()``, which wait on a device and not there.

    Yields:
        Nothing.

    Raises:
        AssertionError: at the end of the block, with every operator and line that synchronized with it.

    Example:
        >>> hits = torch.tensor([True, False, True])
        >>> with no_sync():
        ...     total = hits.sum()
        >>> with no_sync():
        ...     if total.item() > 1: pass
        Traceback (most recent call last):
        AssertionError: synchronizes with the device:
          aten::_local_scalar_dense at <doctest assay.audit.block_checks.no_sync[2]>:2: a value is copied to the CPU
              if total.item() > 1: pass

    Source:
        The operators that wait are facts with their sources, in ``devices/known/operators_*.toml``.
    """
    __tracebackhide__ = True
    block = Block("synchronizes with the device")
    pretended = current()
    with _Watching(block, _waits) if pretended is None else _listening(pretended, block):
        yield
    block.judge()


@contextmanager
def no_float64() -> Iterator[None]:
    """A block in which no tensor of float64 or complex128 may appear on a device, except from inputs that have it.

    As long as no tensor of a device is seen in the block, CPU tensors stand for them. float64 does not exist on Apple
    GPUs, and is slow on most others.

    Yields:
        Nothing.

    Raises:
        AssertionError: at the end of the block, with every operator and line that made such a tensor.

    Example:
        >>> with no_float64():
        ...     mean = torch.ones(3).double().mean()
        Traceback (most recent call last):
        AssertionError: float64 appears on the device:
          aten::_to_copy at <doctest assay.audit.block_checks.no_float64[0]>:2: makes float64 of float32
              mean = torch.ones(3).double().mean()
    """
    __tracebackhide__ = True
    block = Block("float64 appears on the device")
    with _Watching(block, _widens):
        yield
    block.judge()


@contextmanager
def _listening(pretended: PretendDevice, block: Block) -> Iterator[None]:
    def take(event: Event) -> None:
        if event.kind == "sync":
            block.violations.append(Violation(event.operator, event.where, event.why or "synchronizes with the device"))

    pretended.recorder.listeners.append(take)
    try:
        yield
    finally:
        pretended.recorder.listeners.remove(take)


def _waits(func: OpOverload, arguments: dict[str, Any], result: Any) -> str:
    """Why this operator synchronizes with the device; empty if it does not."""
    kinds = [device_type(tensor.device) for tensor in _tensors([list(arguments.values()), result])]
    kind = next((kind for kind in kinds if kind in ACCELERATORS), _STANDS_FOR)
    known = rules(kind)
    if copied := _copied(func, arguments, result):
        copies = known.copies.get(copied)
        return f"copies {copied}" if copies and copies.waits else ""
    rule = known.operator(operator_name(func))
    return rule.why_waits if applies(rule.waits_when, arguments) else ""


def _copied(func: OpOverload, arguments: dict[str, Any], result: Any) -> str:
    """Which way a copy between the CPU and a device goes, as the rules name it; empty for anything else."""
    name = func.overloadpacket.__name__
    if name not in ("copy_", "_to_copy"):
        return ""
    source = arguments["src"] if name == "copy_" else arguments["self"]
    host = [tensor for tensor in (source, result) if tensor.device == _CPU]
    if len(host) != 1:
        return ""
    way = "to device" if host[0] is source else "to host"
    pinned = ", pinned" if host[0].is_pinned() else ""
    return way + pinned + (", non_blocking" if arguments.get("non_blocking") else "")


def _widens(_func: OpOverload, arguments: dict[str, Any], result: Any) -> str:
    """Of what this operator makes float64; empty if it does not, or if its inputs have it already."""
    wide = [tensor for tensor in _tensors(result) if tensor.dtype in _WIDE]
    brought = [tensor.dtype for tensor in _tensors(list(arguments.values()))]
    if not wide or any(dtype in _WIDE for dtype in brought):
        return ""
    of = f" of {_short(brought[0])}" if brought else ""
    return f"makes {_short(wide[0].dtype)}{of}"


def _tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor)]


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _text(violation: Violation, times: int) -> str:
    at = str(violation.line) if violation.line else "no line of Python (a thread of autograd)"
    often = f" ({times} times)" if times > 1 else ""
    source = linecache.getline(violation.line.file, violation.line.line).strip() if violation.line else ""
    return f"  {violation.operator} at {at}{often}: {violation.why}" + (f"\n      {source}" if source else "")
