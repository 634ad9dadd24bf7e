"""Memory of the CPU in huge pages: the system clears it in large pieces, and in a tenth of the time."""

from __future__ import annotations

import mmap

import torch
from torch import Tensor

HUGE_PAGE = 1 << 21
_ADVICE: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
"""Only Linux has it."""


def empty_bytes(count: int) -> Tensor:
    """So many bytes that nobody wrote yet, uint8, for large tables that are filled from their beginning.

    They are in huge pages, where the system gives some, each of which takes memory when it is first touched.
    """
    if _ADVICE is None or count < HUGE_PAGE:
        return torch.empty(count, dtype=torch.uint8, device="cpu")
    try:
        # Not every kernel aligns large mappings; what is mapped and never touched takes no memory.
        mapped = mmap.mmap(-1, count + HUGE_PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        mapped.madvise(_ADVICE)
    except OSError:  # a kernel without them, or no room for them: torch says what it lacks
        return torch.empty(count, dtype=torch.uint8, device="cpu")
    whole = torch.frombuffer(mapped, dtype=torch.uint8)
    start = -whole.data_ptr() % HUGE_PAGE
    return whole[start : start + count]
