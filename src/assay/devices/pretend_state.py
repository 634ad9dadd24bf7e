"""Which kind of device is pretended in this process: :mod:`assay.pretend` sets it, and measurements ask for it."""

from __future__ import annotations

_open: list[str] = []


def pretended_kind() -> str:
    """The kind of the pretend device that is open, such as ``"mps"``; empty if none is."""
    return _open[-1] if _open else ""


def set_pretended_kind(kind: str) -> None:
    """Note that a pretend device was opened; with an empty name, that it was closed."""
    _open[:] = [kind] if kind else []
