"""``torch.compile`` in an audited program: its default backend writes code for the device, which is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from assay.pretend.torch_patches import Patches

INSTEAD = "eager"  # captures graphs as the default does, and runs them by torch's own operators


@contextmanager
def without_code(note: Callable[[str], object]) -> Iterator[None]:
    """While the block runs, ``torch.compile`` captures graphs and writes no code; ``note`` is called once."""
    original, noted = torch.compile, False

    def compile(model: Any = None, *, backend: Any = "inductor", **rest: Any) -> Any:
        nonlocal noted
        if backend != "inductor":
            return original(model, backend=backend, **rest)
        if not noted:
            note(f"torch.compile: its graphs ran with the backend {INSTEAD!r}; code written for the device did not")
        noted = True
        rest = {name: value for name, value in rest.items() if name not in ("mode", "options")}  # of inductor
        return original(model, backend=INSTEAD, **rest)

    with Patches() as patches:
        patches.put(torch, "compile", compile)
        yield
