"""Functions of ours that torch calls while ``torch.compile`` is at work, and that it must not try to compile."""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import torch


def exclude_from_compilation(thing: Any) -> None:
    """Exclude a Python function, and what it calls, from ``torch.compile``; others are returned unchanged.

    On a build that has a device these are C functions, which it never sees. Where a graph may break it looks at every
    Python function that runs, also at those it calls itself while compiling, and would compile them without end.
    """
    while isinstance(thing, staticmethod | classmethod | MethodType):
        thing = thing.__func__
    if isinstance(thing, property):
        thing = thing.fget
    frames = torch._C._dynamo.eval_frame  # as torch._dynamo.eval_frame.skip_code, with what is called, but not imported
    if isinstance(thing, FunctionType) and hasattr(frames, "set_code_exec_strategy"):  # which older releases lack
        skip = frames._FrameAction.SKIP
        frames.set_code_exec_strategy(thing.__code__, frames._FrameExecStrategy(skip, skip))
