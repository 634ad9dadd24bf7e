"""A part of a batch, as it is written on the command line."""

from __future__ import annotations

from typing import Any

from assay.cli.named.functions import found


def part(text: str, several: bool = False) -> Any:
    """A position, a name, several of them, or a function that is named.

    Args:
        text: what was written.
        several: whether commas separate several parts.

    Example:
        >>> part("1"), part("labels"), part("ids,mask", several=True), part("")
        (1, 'labels', ['ids', 'mask'], None)
    """
    if not text:
        return None
    if ":" in text:
        return found(text, "a part of the batch")
    if several and "," in text:
        return [_position(each) for each in text.split(",")]
    return _position(text)


def slices(written: tuple[str, ...]) -> Any:
    """What to slice by: names, several of them crossed, or functions by name.

    Args:
        written: ``region``, ``sex,age`` for both crossed, or ``decade=module:function``.

    Example:
        >>> slices(("region", "sex,age"))
        {'region': 'region', 'sex x age': ('sex', 'age')}
    """
    return dict(_slice(each) for each in written) or None


def _slice(written: str) -> tuple[str, Any]:
    label, _, named = written.rpartition("=")
    if "," in named:
        names = tuple(each.strip() for each in named.split(","))
        return label or " x ".join(names), names
    return label or named.rpartition(":")[2], part(named)


def _position(text: str) -> str | int:
    return int(text) if text.lstrip("-").isdigit() else text
