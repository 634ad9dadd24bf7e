"""Functions of ours that torch calls while ``torch.compile`` is at work, and that it must not try to compile."""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import Any

import torch


def exclude_from_compilation(thing: Any) -> None:
    """Have ``torch.compile`` run a function, and what it calls, as it is; what is no function of Python stays alone.

    On a build that has a device these are C functions, which it never sees. Where a graph may break it looks at every
    Python function that runs, also at those it calls itself while compiling, and would compile them without end.
    """
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    if isinstance(thing, MethodType):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    if isinstance(thing, FunctionType):
        _skip(thing.__code__)


def _skip(code: CodeType) -> None:
    """As ``torch._dynamo.eval_frame.skip_code`` does, with what is called; without importing torch._dynamo."""
    frames = torch._C._dynamo.eval_frame
    if hasattr(frames, "set_code_exec_strategy"):  # older releases of torch have no such function
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(code, frames._FrameExecStrategy(skip, skip))
