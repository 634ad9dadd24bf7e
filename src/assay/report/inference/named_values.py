"""The values of a report that a name stands for: exact names first, then without case."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator

from assay.report.inference.measured_value import MeasuredValue
from assay.report.report import Report
from assay.report.section import Section
from assay.report.slices import Slice
from assay.report.value import Value


def metric_of(report: Report, name: str) -> tuple[Section, MeasuredValue] | str:
    """The value of all samples that `metric` or `section/metric` names, with its section; or why none fits."""
    found = find_metric(report, name, names_of_values)
    if isinstance(found, str):
        return found
    measured = value_of(*found, None)
    return measured if isinstance(measured, str) else (found[0], measured)


def value_of(section: Section, name: str, part: Slice | None) -> MeasuredValue | str:
    values: list[Value] = [value for value in (part or section).values if value.name == name]
    if len(values) != 1:
        return f"{len(values)} metrics of this name" if values else "missing"
    return MeasuredValue.of(section, name, part)


def find_metric(report: Report, name: str, names: Callable[[Section], Iterable[str]]) -> tuple[Section, str] | str:
    """The section and the metric that a rule names, or why none fits: exact names first, then without case."""
    there = [(section, each) for section in report.sections for each in dict.fromkeys(names(section))]
    for form in (str, str.casefold):
        wanted = form(name)
        fit = [(s, each) for s, each in there if wanted in (form(each), form(f"{s.name}/{each}"))]
        if len(fit) == 1:
            return fit[0]
        if fit:
            return f"ambiguous: name one of {', '.join(f'{section.name}/{each}' for section, each in fit)}"
    known = ", ".join(f"{section.name}/{each}" for section, each in there) or "nothing"
    return f"missing: there is {known:.400}"


def names_of_values(section: Section) -> Iterator[str]:
    return (value.name for value in section.values)


def names_in_slices(section: Section) -> Iterator[str]:
    for each in section.slices:
        yield from (value.name for value in each.values)


def fits(name: str, pattern: str) -> bool:
    """Whether a name is the pattern, in which ``*`` stands for anything.

    Example:
        >>> fits("language = de", "language = *"), fits("language = de", "*en*"), fits("ab", "ab*b")
        (True, False, False)
    """
    return fnmatch.fnmatchcase(name, re.sub(r"[\[?]", r"[\g<0>]", pattern))  # brackets stand for themselves
