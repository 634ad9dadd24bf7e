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
from torch.utils._pytree import tree_map_only

from assay.audit.hard_coded import is_program
from assay.pretend.session import PretendDevice

NARROWER = {torch.float64: torch.float32, torch.complex128: torch.complex64}
OWN = str(Path(__file__).parent)  # which runs the program in a ``try`` itself
CONVERTS = {"double": torch.float32, "cdouble": torch.complex64}


class GoingOn(TorchFunctionMode):
    """While it is open, a call that the device refuses is explained, and gives what it would give once it is fixed.

    Operands on other devices are moved to the device, float64 becomes float32 where the device lacks it, and operators
    that it lacks run on the CPU. An error that the program itself may handle is raised, as are all others.

    Args:
        pretended: the device.
        explain: takes an error and returns the kind of refusal it came from, or ``""``.
    """

    def __init__(self, pretended: PretendDevice, explain: Callable[[BaseException], str]) -> None:
        super().__init__()
        self._device, self._recorder, self._explain = pretended.device, pretended.recorder, explain

    def __torch_function__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        try:
            return func(*args, **kwargs)
        except (RuntimeError, TypeError) as error:
            caller = sys._getframe(1)
            if _may_be_handled(caller):
                raise
            kind = self._explain(_with_callers(error, caller))
            fix = {"devices": self._moved, "dtype": self._narrowed, "operator": self._on_cpu}.get(kind)
            if fix is None:
                raise
            with self._recorder.quiet():
                return fix(func, args, kwargs)

    # Fixes: each gives what the call would give once the program is changed

    def _moved(self, func: Any, args: Any, kwargs: Any) -> Any:
        def there(tensor: Tensor) -> Tensor:
            if tensor.device == self._device:
                return tensor
            moved = tensor.to(self._device)
            if isinstance(tensor, torch.nn.Parameter):
                tensor.data = moved
                return tensor
            return moved

        args, kwargs = tree_map_only(Tensor, there, (args, kwargs))
        return func(*args, **kwargs)

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
        copies: list[tuple[Tensor, Tensor, int]] = []

        def copied(tensor: Tensor) -> Tensor:
            copy = tensor.cpu()
            copies.append((tensor, copy, copy._version))
            return copy

        args, kwargs = tree_map_only(Tensor, copied, (args, kwargs))
        args, kwargs = tree_map_only(torch.device, lambda _: torch.device("cpu"), (args, kwargs))
        result = func(*args, **kwargs)
        for tensor, copy, version in copies:
            if copy._version != version:  # written to in place
                tensor.copy_(copy)
        written = {id(copy): tensor for tensor, copy, _ in copies}
        return tree_map_only(
            Tensor, lambda x: written.get(id(x), x if x.device == self._device else x.to(self._device)), result
        )


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
