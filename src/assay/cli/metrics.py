"""``assay metrics``: every metric with what it is, or one of them with all that is known of it."""

from __future__ import annotations

import difflib
import inspect
import json
from typing import Any

from assay.cli.options.tools import MetricsCommand
from assay.errors import ConfigError, describe
from assay.metrics.base import DIRECTIONS, Metric
from assay.metrics.catalogue import families, interval_of
from assay.metrics.documentation import sections
from assay.metrics.parsing import SHORT, class_named
from assay.metrics.samples import public_metrics
from assay.migrate.table import LIBRARIES, library


def run(options: MetricsCommand) -> None:
    """Print the metrics."""
    found = _named(options.name)
    if options.json:
        print(json.dumps([_facts(name) for name in found], indent=1))
    elif len(found) == 1 and options.name:
        print(_page(found[0]))
    else:
        print(_list(found))


def _named(name: str) -> list[str]:
    """The metric of a name, or those whose name or summary has it; all where it is empty."""
    known = public_metrics()
    if not name:
        return [each for kinds in families().values() for each in kinds]
    named = class_named(name)
    if named is not None and named[0] in known:
        return [named[0]]
    word = name.lower()
    found = [each for each, kind in known.items() if word in each.lower() or word in _summary(kind).lower()]
    if not found:
        close = difflib.get_close_matches(word, [*SHORT, *map(str.lower, known)], 3)
        do = f"Write assay metrics {close[0]}" if close else "Write assay metrics, which lists all"
        raise ConfigError(describe("metrics", repr(name), " or ".join(close) or "the name of a metric", do))
    return found


def _summary(kind: type[Metric]) -> str:
    return sections(kind.__doc__)[""].partition("\n\n")[0].replace("\n", " ")


def _written(name: str) -> list[str]:
    """How a metric is written as a string: in full, and its abbreviations."""
    return [name.lower(), *(short for short, (cls, _) in SHORT.items() if cls == name)]


def _facts(name: str) -> dict[str, Any]:
    kind = public_metrics()[name]
    others = {
        each: [entry.name for entry in library(each).entries.values() if entry.assay == name] for each in LIBRARIES
    }
    return {
        "name": name,
        "family": kind.family,
        "written": _written(name),
        "summary": _summary(kind),
        "better": DIRECTIONS[kind.higher_is_better],
        "interval": interval_of(kind),
        "arguments": dict(kind.arguments),
        "elsewhere": {each: names for each, names in others.items() if names},
    }


def _page(name: str) -> str:
    facts, kind = _facts(name), public_metrics()[name]
    elsewhere = "; ".join(f"{library(each).title}: {', '.join(names)}" for each, names in facts["elsewhere"].items())
    lines = [
        f"{name}{inspect.signature(kind)}".partition(" -> ")[0],
        "",
        inspect.getdoc(kind) or "",
        "",
        f"As a string: {', '.join(facts['written'])}",
        f"Better: {facts['better'] or 'neither higher nor lower'}",
        f"Interval: {facts['interval']}",
        *([f"Elsewhere: {elsewhere}"] if elsewhere else []),
    ]
    return "\n".join(lines)


def _list(names: list[str]) -> str:
    wide = max(map(len, names))
    lines: list[str] = []
    for family, kinds in families().items():
        listed = [each for each in kinds if each in names]
        if listed:
            lines += [family, *(f"  {each:{wide}}  {_summary(kinds[each])}" for each in listed), ""]
    return "\n".join([*lines, "assay metrics NAME shows one of them."])
