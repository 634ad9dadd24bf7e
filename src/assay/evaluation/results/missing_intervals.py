"""Why values of a report have no interval: one line a reason."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from assay.render.text import first_names


@dataclass(frozen=True)
class MissingInterval:
    """A value without an interval.

    Attributes:
        name: of the value.
        reason: why the value has no interval.
        slice_name: of which slice; empty for all samples.
    """

    name: str
    reason: str
    slice_name: str = ""


def missing_interval_notes(missing: Iterable[MissingInterval]) -> list[str]:
    """One line a reason, with the values and slices that it concerns.

    Example:
        >>> few = "fewer than 12 queries"
        >>> missing_interval_notes([MissingInterval("MRR", few), MissingInterval("MRR", few, "lang = de")])
        ['No interval for MRR, in all samples and in slice lang = de: fewer than 12 queries.']
    """
    by_reason: dict[str, list[MissingInterval]] = {}
    for each in missing:
        by_reason.setdefault(each.reason, []).append(each)
    return [f"No interval for {'; '.join(_concerned(of))}: {reason}." for reason, of in by_reason.items()]


def _concerned(missing: list[MissingInterval]) -> list[str]:
    """The values of all samples and those of slices, together where these are the same."""
    overall = dict.fromkeys(each.name for each in missing if not each.slice_name)
    in_slices = dict.fromkeys(each.name for each in missing if each.slice_name)
    slices = dict.fromkeys(each.slice_name for each in missing if each.slice_name)
    where = f"in {'slice' if len(slices) == 1 else 'slices'} {first_names(slices)}"
    if overall and overall == in_slices:
        return [f"{first_names(overall)}, in all samples and {where}"]
    return ([first_names(overall)] if overall else []) + ([f"{first_names(in_slices)} {where}"] if slices else [])
