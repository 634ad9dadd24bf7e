"""The tables of metrics in the README and the documentation, written from what each metric declares.

`python -m assay.metrics.catalogue` writes them into the checkout that the package lies in.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from assay.errors import ConfigError, describe
from assay.metrics.base import DIRECTIONS, NO_ESTIMATE, Metric, named_numbers
from assay.metrics.composition import without_data
from assay.metrics.documentation import sections
from assay.metrics.samples import examples, public_metrics


def families() -> dict[str, dict[str, type[Metric]]]:
    """Every metric by its family and its name."""
    families: dict[str, dict[str, type[Metric]]] = {}
    for name, kind in public_metrics().items():
        families.setdefault(kind.family, {})[name] = kind
    return dict(sorted(families.items()))


def interval_of(kind: type[Metric]) -> str:
    """How a confidence interval of a metric's value is found; or "none: ..." with the reason."""
    metrics = list(examples(kind))
    closed = next((metric.closed_form for metric in metrics if metric.closed_form), "")
    numbers = [metric for metric in metrics if any(True for _ in named_numbers("", without_data("metric", metric)))]
    if closed or any(metric.estimates for metric in numbers):
        return closed or "bootstrap"
    return f"none: {NO_ESTIMATE}" if numbers else NO_NUMBER


NO_NUMBER = "none: no single number"


def family_table() -> str:
    """One row a family, with the names of its metrics."""
    rows = [(family, ", ".join(kinds)) for family, kinds in families().items()]
    return _table(("family", "metrics (`assay.metrics`)"), rows)


def interval_table() -> str:
    """One row a way to an interval, with the names of the metrics."""
    names: dict[str, list[str]] = {}
    for name, kind in public_metrics().items():
        names.setdefault(interval_of(kind), []).append(f"`{name}`")
    order = sorted(names, key=lambda way: (way.startswith("none"), way == "bootstrap", way))
    return _table(("interval", "of"), [(way, ", ".join(names[way])) for way in order])


def metric_tables() -> str:
    """One table a family: each metric with what it is, which values are better, and how its terms are rounded."""
    heads = ("metric", "what it is", "better", "terms", "interval")
    parts = []
    for family, kinds in families().items():
        rows = [
            (
                f"`{name}`",
                sections(kind.__doc__)[""].partition("\n\n")[0].replace("\n", " ").replace("|", "\\|"),
                DIRECTIONS[kind.higher_is_better],
                "exact" if kind.exact_terms else "rounded",
                interval_of(kind).partition(":")[0],
            )
            for name, kind in kinds.items()
        ]
        parts.append(f"## {family.capitalize()}\n\n{_table(heads, rows)}")
    return "\n\n".join(parts)


PAGES: Mapping[str, tuple[str, ...]] = {
    "docs/overview.md": ("family_table",),
    "docs/zh/overview.md": ("family_table",),
    "docs/intervals.md": ("interval_table",),
    "docs/metrics.md": ("metric_tables",),
}
"""Which pages have which tables, between the comments `<!-- NAME -->` and `<!-- /NAME -->`."""


def page(text: str, tables: Sequence[str]) -> str:
    """A page with its tables written anew.

    Raises:
        ConfigError: the page lacks the comments between which a table belongs.
    """
    for name in tables:
        start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
        pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
        if not pattern.search(text):
            raise ConfigError(describe(name, "no place in the page", f"{start} ... {end}", "Add both comments"))
        written = f"{start}\n\n{globals()[name]()}\n\n{end}"
        text = pattern.sub(lambda _, written=written: written, text)  # type: ignore[misc]
    return text


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    root = Path(__file__).parents[3]
    for path, tables in PAGES.items():
        (root / path).write_text(page((root / path).read_text("utf-8"), tables), "utf-8")
