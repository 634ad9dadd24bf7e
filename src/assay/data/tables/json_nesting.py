"""How deep the values of JSON lines are nested, found before a reader that recurses is given them."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.errors import StateError, describe

MOST_NESTED = 100
_OTHERS = bytes(set(range(256)) - set(b'[]{}"'))
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"[{")], _STEPS[list(b"]}")] = 1, -1


def check_nesting(filesystem: Any, path: str, block_bytes: int) -> None:
    """Raise where values in the first block of a file of JSON lines are nested too deep.

    The reader of pyarrow makes a type of every level in the block from which it takes the names of columns, and ends
    the process where there are some thousands of them.

    Args:
        filesystem: where the file is, as pyarrow has it.
        path: the file.
        block_bytes: the size of a block.

    Raises:
        StateError: there are more than `MOST_NESTED` levels.
    """
    with filesystem.open_input_stream(path) as stream:
        block = stream.read(block_bytes)
    if (levels := deepest(block)) > MOST_NESTED:
        got = f"a value that is nested {levels:,} deep"
        do = "Leave that field out, or write it as a string"
        raise StateError(describe(path, got, f"at most {MOST_NESTED} levels of lists and objects", do))


def deepest(block: bytes) -> int:
    """How many lists and objects are open at once, at most; brackets in strings open none.

    Example:
        >>> deepest(b'{"a": [[1]]}'), deepest(b"[" * 300 + b"]" * 300), deepest(b'{"a": "' + b"[" * 300 + b'"}')
        (3, 300, 1)
    """
    plain = block.replace(b"\\\\", b"").replace(b'\\"', b"") if b"\\" in block else block
    signs = np.frombuffer(plain.translate(None, _OTHERS), np.uint8)
    is_outside = np.cumsum(signs == ord('"'), dtype=np.int32) % 2 == 0
    return int(np.cumsum(_STEPS[signs] * is_outside, dtype=np.int32).max(initial=0))
