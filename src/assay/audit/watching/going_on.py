"""Another run of a program that goes on after what the device refuses, so that all of it is seen at once."""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten

from assay.audit.watching.hard_coded import is_program
from assay.audit.watching.replaced_devices import COLLECTIVES
from assay.devices.placement import same_kind
from assay.pretend.session import PretendDevice
from assay.pretend.torch_patches import Patches

FAULTS = (RuntimeError, TypeError, ValueError)
NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}
OWN = str(Path(__file__).parents[1])  # which runs the program in a ``try`` itself
CONVERTS = {"double": torch.float32, "cdouble": torch.complex64}


class GoingOn(TorchFunctionMode):
    """While it is open, a call that the device refuses is explained, and gives what it would give once it is fixed.

    Operands and generators on other devices are moved to the device (of several of its kind to the one that the other
    operands are on), float64 becomes float32 where the device lacks it, and operators that it lacks run on the CPU. So
    do calls that fail there for another reason and work on the CPU. An error that the program itself may handle is
    raised, as are all others.

    Args:
        pretended: the device.
        explain: takes an error and returns the kind of refusal it came from, ``"unsupported"`` where assay itself
            refuses, or ``""``.
        report: takes an error that no refusal explains, of a call that works on the CPU.
    """

    def __init__(
        self,
        pretended: PretendDevice,
        explain: Callable[[BaseException], str],
        report: Callable[[BaseException], object],
    ) -> None:
        super().__init__()
        self._device, self._recorder, self._explain = pretended.device, pretended.recorder, explain
        self._report, self._generators = report, _GeneratorsThere()
        self._patches = Patches()
        self._over_gloo: dict[Any, Any] = {}  # by the default group: one that takes tensors of the CPU

    def __enter__(self) -> GoingOn:
        for name in COLLECTIVES if torch.distributed.is_available() else ():
            self._patches.put(torch.distributed, name, self._guarded(getattr(torch.distributed, name)))
        for owner in (torch, torch.random, getattr(torch, self._device.type)):
            if restore := getattr(owner, "set_rng_state", None):
                self._patches.put(owner, "set_rng_state", self._guarded(restore))
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._patches.restore()

    def _guarded(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that torch does not show to modes, such as a collective: by the same rules as every other call."""

        def call(*args: Any, **kwargs: Any) -> Any:
            return self._run(function, args, kwargs, sys._getframe(1))

        call.__name__ = function.__name__
        return call

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        return self._run(func, args, kwargs or {}, sys._getframe(1))

    def _run(self, func: Any, args: Any, kwargs: Any, caller: FrameType) -> Any:
        try:
            return func(*args, **kwargs)
        except FAULTS as fault:
            if _may_be_handled(caller):
                raise
            error = _with_callers(fault, caller)
            kind = self._explain(error)
            collective = getattr(func, "__name__", "") in COLLECTIVES  # writes into operands
            for fix in (self._on_cpu,) if collective else self._fixes(kind):
                with suppress(*FAULTS), self._recorder.quiet():
                    result = fix(func, args, kwargs)
                    break
            else:  # such as an operator that the CPU lacks, too: the program ends here
                raise error from None
            if not kind:
                self._report(error)
            return result

    def _fixes(self, kind: str) -> tuple[Callable[..., Any], ...]:
        known = {"devices": self._moved, "dtype": self._narrowed, "operator": self._on_cpu, "unsupported": self._on_cpu}
        return (known[kind],) if kind in known else () if kind else (self._moved, self._one_on_cpu, self._on_cpu)

    # Fixes: each gives what the call would give once the program is changed

    def _place(self, args: Any, kwargs: Any) -> torch.device:
        """Where a fixed call computes: on the device, or on another of its kind if the call is only about that."""
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        there = [tensor.device for tensor in tensors if same_kind(tensor.device, self._device)]
        if not there and isinstance(named := kwargs.get("device"), str | torch.device):
            made = torch.empty(0, device=named).device
            there = [made] if same_kind(made, self._device) else []
        return there[0] if there and self._device not in there else self._device

    def _moved(self, func: Any, args: Any, kwargs: Any) -> Any:
        place = self._place(args, kwargs)

        def there(tensor: Tensor) -> Tensor:
            if tensor.device == place:
                return tensor
            moved = tensor.to(place)
            if isinstance(tensor, torch.nn.Parameter):
                with suppress(RuntimeError):  # a device of an adapter takes no parameter of the CPU in place
                    tensor.data = moved
                    return tensor
            return moved

        args, kwargs = tree_map_only(torch.Generator, lambda each: self._generators.of(each, place), (args, kwargs))
        args, kwargs = tree_map_only(Tensor, there, (args, kwargs))
        return func(*args, **kwargs)

    def _one_on_cpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        """The call with one of its tensors on the CPU, such as the lengths of packed sequences."""
        leaves, form = tree_flatten((args, kwargs))
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, Tensor) and same_kind(leaf.device, self._device):
                there = [*leaves[:place], leaf.cpu(), *leaves[place + 1 :]]
                with suppress(*FAULTS):
                    args, kwargs = tree_unflatten(there, form)
                    return func(*args, **kwargs)
        raise TypeError("it works with no single tensor on the CPU")

    def _narrowed(self, func: Any, args: Any, kwargs: Any) -> Any:
        dtype = CONVERTS.get(getattr(func, "__name__", ""))
        if dtype is not None:
            return args[0].to(dtype)
        args, kwargs = tree_map_only(torch.dtype, lambda each: NARROWER.get(each, each), (args, kwargs))
        args, kwargs = tree_map_only(Tensor, lambda x: x.to(NARROWER.get(x.dtype, x.dtype)), (args, kwargs))
        try:
            return func(*args, **kwargs)
        except RuntimeError:  # the device has the dtype, and no kernel of the operator for it
            return self._on_cpu(func, args, kwargs)
        except TypeError:  # made of float64 values of Python or NumPy
            return func(*args, **kwargs | {"dtype": torch.float32})

    def _on_cpu(self, func: Any, args: Any, kwargs: Any) -> Any:
        if getattr(func, "__name__", "") == "pin_memory":
            return args[0]
        place = self._place(args, kwargs)
        copies: list[tuple[Tensor, Tensor, int | None]] = []

        def copied(tensor: Tensor) -> Tensor:
            copy = tensor.cpu()
            copies.append((tensor, copy, None if copy.is_inference() else copy._version))
            return copy

        args, kwargs = tree_map_only(Tensor, copied, (args, kwargs))
        args, kwargs = tree_map_only(torch.device, lambda _: torch.device("cpu"), (args, kwargs))
        collective = getattr(func, "__name__", "") in COLLECTIVES
        result = func(*args, **kwargs, **self._group_for(kwargs) if collective else {})
        if collective and hasattr(result, "wait"):
            result.wait()
        for tensor, copy, version in copies:
            if collective or _is_written(tensor, copy, version):
                tensor.copy_(copy)
        written = {id(copy): tensor for tensor, copy, _ in copies}
        return tree_map_only(Tensor, lambda x: written.get(id(x), x.to(place)), result)

    def _group_for(self, kwargs: Any) -> dict[str, Any]:
        """The group of a collective on the CPU: the backend of a device refuses its tensors."""
        world = torch.distributed.group.WORLD
        if "group" in kwargs or world is None:
            return {}
        if world not in self._over_gloo:
            self._over_gloo[world] = torch.distributed.new_group(backend="gloo")
        return {"group": self._over_gloo[world]}


class _GeneratorsThere:
    """For each generator of another device one on the device of a call, with its seed."""

    def __init__(self) -> None:  # both generators are kept, so that no id comes twice
        self._made: dict[tuple[int, torch.device], tuple[torch.Generator, torch.Generator]] = {}

    def of(self, generator: torch.Generator, device: torch.device) -> torch.Generator:
        """The generator that a fixed program would have."""
        if generator.device == device:
            return generator
        key = id(generator), device
        if key not in self._made:
            there = torch.Generator(device)
            there.manual_seed(generator.initial_seed())
            self._made[key] = generator, there
        return self._made[key][1]


def _is_written(tensor: Tensor, copy: Tensor, version: int | None) -> bool:
    """Whether a call wrote to a copy of a tensor in place; what is made in inference mode has no version."""
    return not torch.equal(tensor.cpu(), copy) if version is None else copy._version != version


def _with_callers(error: BaseException, frame: FrameType | None) -> BaseException:
    """The error with the frames that led to it in its traceback, as if nobody had caught it."""
    trace = error.__traceback__
    while frame is not None:
        trace = TracebackType(trace, frame, frame.f_lasti, frame.f_lineno)
        frame = frame.f_back
    return error.with_traceback(trace)


def _may_be_handled(frame: FrameType | None) -> bool:
    """Whether a line of the program or of a library that led here stands in a ``try`` with handlers."""
    while frame is not None and not frame.f_code.co_filename.startswith(OWN):
        code = frame.f_code
        if is_program(frame) and any(begin <= frame.f_lineno <= end for begin, end in _tried(code.co_filename)):
            return True
        frame = frame.f_back
    return False


@cache
def _tried(file: str) -> tuple[tuple[int, int], ...]:
    """The lines of a file that are in the body of a ``try`` which handles errors: the first and the last of each."""
    lines = linecache.getlines(file)
    with suppress(SyntaxError, ValueError):
        return tuple(_bodies(ast.parse("".join(lines))))
    return ()


def _bodies(tree: ast.AST) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Try) and node.handlers:
            yield node.body[0].lineno, node.body[-1].end_lineno or node.body[-1].lineno
