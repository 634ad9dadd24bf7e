"""The report as one HTML page that needs nothing else: styles, script and plots are inside it.

All text of the report is escaped by Jinja. The page's security policy forbids every load from elsewhere and every
script but the one written here, whose hash it names, so that even text that slipped through could not run.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from importlib import resources
from typing import Any

from assay.report import text
from assay.report.plain import Cell
from assay.report.plots import Curves, Distribution, Plot
from assay.report.report import Report, Section, Table
from assay.report.sliced import Dots, Slices, dots_of, slices_of
from assay.report.svg import line_style, to_svg
from assay.report.value import methods
from assay.report.worst import worst_errors


def to_html(report: Report) -> str:
    """Draw a report as a page.

    Args:
        report: what to draw.

    Returns:
        A whole HTML document: light or dark as the reader's system is, fit for a phone and for paper.

    Example:
        >>> to_html(Report("my <model>")).splitlines()[0]
        '<!doctype html>'
    """
    from markupsafe import Markup

    keys = (f"p{i}" for i in range(10**9))
    return page(
        "page.html",
        report=report,
        shown=[_shown(i, section) for i, section in enumerate(report.sections, 1)],
        draw=lambda plot: Markup(to_svg(plot, next(keys))),
        legend=_legend,
        interval=text.interval,
        methods=methods,
    )


@dataclass(frozen=True)
class _Shown:
    """A section as the page shows it.

    Args:
        section: the section.
        slices: its slices, with the worst marked.
        dots: one plot a headline metric, over the slices.
        tables: the worst errors and the tables of the section, each with the id of its heading.
        parts: ids and titles of the headings, for the contents.
    """

    section: Section
    slices: Slices | None
    dots: tuple[Dots, ...]
    tables: tuple[tuple[str, Table], ...]
    parts: tuple[tuple[str, str], ...]


def _shown(number: int, section: Section) -> _Shown:
    worst = worst_errors(section)
    slices = slices_of(section)
    tables = tuple(
        (f"s{number}-t{i}", table) for i, table in enumerate((*((worst,) if worst else ()), *section.tables))
    )
    parts = [(f"s{number}-plots", "Plots")] if section.plots else []
    parts += [(f"s{number}-slices", "Slices")] if slices else []
    parts += [(key, table.name) for key, table in tables]
    return _Shown(section, slices, dots_of(section), tables, tuple(parts))


def page(template: str, **content: Any) -> str:
    """Fill a template; style and script are those of all pages.

    Args:
        template: the name of its file.
        content: what it shows. All text is escaped.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("assay.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        clean=text.clean,
        number=text.number,
        cell=text.cell,
        rows=text.rows,
        seconds=text.seconds,
        kind=_kind,
        sort_key=_sort_key,
    )
    script = _part("page.js")
    return environment.get_template(template).render(
        style=Markup(_part("page.css")),  # ours, not the report's
        script=Markup(script),
        script_hash=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **content,
    )


def _part(name: str) -> str:
    return resources.files("assay.report").joinpath("page", name).read_text(encoding="utf-8").strip()


def _legend(plot: Plot) -> list[tuple[str, str, str, str]]:
    """For each line of a plot of several: ink, dashes, name, area or size."""
    if isinstance(plot, Distribution) and len(plot.series) > 1:
        return [(*line_style(i), each.name, f"n = {sum(each.counts):,}") for i, each in enumerate(plot.series)]
    if not isinstance(plot, Curves) or len(plot.curves) < 2:
        return []
    return [
        (*line_style(i), curve.name, "" if curve.area is None else text.number(curve.area))
        for i, curve in enumerate(plot.curves)
    ]


def _kind(value: Cell) -> str:
    """The CSS class of a cell: numbers to the right, bit patterns in a fixed pitch."""
    if isinstance(value, str):
        return "bits" if value.startswith(("0x", "-0x")) else "text"
    return "number"


def _sort_key(value: Cell) -> str:
    return "" if value is None or isinstance(value, str) else repr(value)
