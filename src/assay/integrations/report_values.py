"""A report as experiment trackers keep it: numbers and tables under flat names. Needs none of them."""

from __future__ import annotations

from collections.abc import Iterator

from assay.errors import ConfigError, describe
from assay.report import Report, Section, Table, Value


def numbers(report: Report, prefix: str = "") -> dict[str, float]:
    """The headline values by name, and the ends of their intervals as `..._lower` and `..._upper`.

    Values of slices are `metric[slice]`. Where there are several sections, the section comes first: `section/metric`.

    Args:
        report: the report.
        prefix: put before each name.

    Raises:
        ConfigError: it is no report, or two values have one name.

    Example:
        >>> section = Section("test", [Value("accuracy", 0.94, lower=0.91, upper=0.96)])
        >>> numbers(Report("digits", [section]), "val/")
        {'val/accuracy': 0.94, 'val/accuracy_lower': 0.91, 'val/accuracy_upper': 0.96}
    """
    values: dict[str, float] = {}
    for section, where in _sections(report, prefix):
        for name, value in _values(section):
            ends = {"": value.value, "_lower": value.lower, "_upper": value.upper}
            named = {f"{where}{name}{end}": number for end, number in ends.items() if number is not None}
            if twice := values.keys() & named.keys():
                do = "Give each value a name of its own"
                raise ConfigError(describe("report", f"two values named {min(twice)!r}", "unique names", do))
            values |= named
    return values


def tables(report: Report, prefix: str = "") -> dict[str, Table]:
    """The tables of a report by name, as `section/table`; those of one name are numbered.

    Example:
        >>> section = Section("test", tables=[Table("per class", ("class", "recall"), [("cat", 0.8)])])
        >>> list(tables(Report("digits", [section])))
        ['per class']
    """
    grids: dict[str, Table] = {}
    for section, where in _sections(report, prefix):
        for table in section.tables:
            name, count = f"{where}{table.name}", 1
            while name in grids:
                count += 1
                name = f"{where}{table.name} {count}"
            grids[name] = table
    return grids


def _sections(report: Report, prefix: str) -> list[tuple[Section, str]]:
    argument: object = report
    if not isinstance(argument, Report):
        do = "Pass what evaluate(...) gave, or Report.load(path)"
        raise ConfigError(describe("report", type(argument).__name__, "a report of assay", do))
    prefixed = len(report.sections) > 1
    return [(section, f"{prefix}{section.name}/" if prefixed else prefix) for section in report.sections]


def _values(section: Section) -> Iterator[tuple[str, Value]]:
    yield from ((value.name, value) for value in section.values)
    for part in section.slices:
        yield from ((f"{value.name}[{part.name}]", value) for value in part.values)
