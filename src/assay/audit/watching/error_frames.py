"""What an error says of the line it came from: the frames that led there, and the tensors that they hold."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from assay.audit.tensor_trees import is_module, is_tensor
from assay.audit.watching.source_code import look_up, names_in, statement
from assay.pretend.events import Frame


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those it came from."""
    ids: set[int] = set()
    while error is not None and id(error) not in ids:
        ids.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def frames_of(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames of the error that came first in the chain, innermost first, with the line in each."""
    *_, first = chain(error)
    trace: TracebackType | None = first.__traceback__
    frames = []
    while trace is not None:
        frames.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    return frames[::-1]


def stack_of(error: BaseException) -> tuple[Frame, ...]:
    """The lines of Python of an error, innermost first, without torch's."""
    torch = getattr(sys.modules.get("torch"), "__file__", "") or "no torch"
    inside = torch.removesuffix("__init__.py")
    frames = ((frame.f_code, line) for frame, line in frames_of(error))
    return tuple(
        Frame(code.co_filename, line, code.co_qualname)
        for code, line in frames
        if not code.co_filename.startswith((inside, "<frozen"))
    )


def compiled_of(error: BaseException) -> tuple[Frame, ...]:
    """The lines of Python that torch.compile was reading when it raised, innermost first: its error names them."""
    text = str(error).partition("from user code:")[2]
    lines = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', text)
    return tuple(Frame(file, int(line), function) for file, line, function in reversed(lines))


def operands_of(error: BaseException, line: Frame | None) -> tuple[tuple[str, str], ...]:
    """The tensors that the line names, with their dtype and device: read from the frame of the error."""
    tensors = tensors_at(error, line)
    return tuple((name, f"{str(x.dtype).removeprefix('torch.')} on {x.device}") for name, x in tensors)


def tensors_at(error: BaseException, line: Frame | None) -> list[tuple[str, Any]]:
    """The tensors that the line names, by name."""
    frame, code = _frame_at(error, line), statement(line) if line else None
    if frame is None or code is None:
        return []
    named = ((name, look_up(name, frame)) for name in _names_read_in(code))
    return [(name, value) for name, value in named if is_tensor(value)]


def tensors_below(error: BaseException, line: Frame | None) -> list[tuple[str, Any]]:
    """The tensors that the functions hold which the line called, such as the input of a layer."""
    at = _frame_at(error, line)
    tensors: list[tuple[str, Any]] = []
    for frame, _ in frames_of(error):
        if frame is at:
            break
        arguments = frame.f_locals.get("args")
        tensors += [("", value) for value in (*frame.f_locals.values(), *(arguments or ())) if is_tensor(value)]
    return tensors if at is not None else []


def unregistered_of(error: BaseException, line: Frame | None) -> tuple[str, ...]:
    """The names of the line that are plain tensor attributes of a module: nothing that its ``to`` moves."""
    frame = _frame_at(error, line)
    owner = frame.f_locals.get("self") if frame is not None else None
    if not is_module(owner):
        return ()
    names = (name for name, _ in tensors_at(error, line))
    states = getattr(owner, "_defaults", {})  # of TorchMetrics, whose add_state has them moved
    own = vars(owner).keys() - states.keys() if isinstance(states, dict) else vars(owner).keys()
    return tuple(name for name in names if name.startswith("self.") and name[5:] in own)


def _frame_at(error: BaseException, line: Frame | None) -> FrameType | None:
    frames = frames_of(error) if line is not None else []
    at = (frame for frame, number in frames if line and (frame.f_code.co_filename, number) == (line.file, line.line))
    return next(at, None)


def _names_read_in(code: ast.stmt) -> list[str]:
    """The names on the right-hand side: what was read, not what was to be written."""
    value = getattr(code, "value", None)
    augmented = [code.target] if isinstance(code, ast.AugAssign) else []
    return [name for part in [*augmented, value if isinstance(value, ast.AST) else code] for name in names_in(part)]
