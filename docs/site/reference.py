"""The pages of the reference, one a package, from its `__all__`; `metric_pages` makes those of metrics."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

import assay
from assay.compat.drop_ins import ADAPTED, DropIn, drop_ins
from assay.metrics.base import Metric
from assay.metrics.catalogue import families
from assay.metrics.documentation import sections
from assay.migrate.catalogue import CatalogueRow, catalogue
from assay.migrate.table import LIBRARIES, library

SRC = Path(assay.__file__).parent
METRICS = "assay.metrics"
_CALCULATION = re.compile(r" [-+/*=<>] |^\{|\b(?:sum|mean|max|min|median|exp|sqrt|acos|prod)\b")
"""What code has that is a formula: an operator, a function of numbers, or a dictionary of values."""


def public_packages() -> dict[str, list[str]]:
    """Every public package and module that lists its names in `__all__`, with these names."""
    paths = [*SRC.rglob("__init__.py"), *SRC.glob("*.py")]
    names = sorted({".".join(("assay", *path.relative_to(SRC).with_suffix("").parts)) for path in paths})
    modules = [name.removesuffix(".__init__") for name in names if "._" not in name.removesuffix(".__init__")]
    listed = {name: list(getattr(import_module(name), "__all__", ())) for name in modules if _lists_names(name)}
    return {name: names for name, names in listed.items() if names}


def pages() -> dict[str, str]:
    """The Markdown of each page of the reference except those of metrics, by its path in the site."""
    listed = public_packages()
    metrics = {name for kinds in families().values() for name in kinds}
    texts = {
        f"reference/{package}.md": _page(package, _purpose(package), (f"{package}.{name}" for name in names))
        for package, names in listed.items()
        if package != METRICS
    }
    others = [name for name in listed[METRICS] if name not in metrics]
    homes = (f"{getattr(import_module(METRICS), name).__module__}.{name}" for name in others)
    texts[metric_page("base_classes")] = _page("Base classes", f"More names in `{METRICS}`.", homes)
    return texts | {f"reference/assay.compat.{name}.md": drop_in_page(name) for name in ("torchmetrics", "ignite")}


def drop_in_page(name: str) -> str:
    """Every name of a library: which metric of assay counts, and where its values differ."""
    found, table = drop_ins(name), library(name)
    counted = sorted((each for each in found.values() if each.assay or each.tasks), key=lambda each: each.name)
    own = sorted(
        (each for each in found.values() if each not in counted and each.name not in ADAPTED),
        key=lambda each: each.name,
    )
    notes = {each.name: _links([each.name, *each.tasks, *_assay_names(each, found)], name) for each in counted}
    parts = [
        f"# assay.compat.{name}",
        f"`from assay.compat import {name}` has the names of {table.title} {table.version}: "
        f"{len(counted)} classes and functions are counted by assay, {len(own)} are the library's own. "
        "[One changed import](../compat.md) says how they behave, and what collections and wrappers do.",
        "## Counted by assay",
        f"| {table.title} | assay counts | values that differ |\n|---|---|---|\n"
        + "\n".join(
            f"| `{each.name}` | {', '.join(f'[{kind}](metrics/{kind}.md)' for kind in _assay_names(each, found))} "
            f"| {notes[each.name]} |"
            for each in counted
        ),
        f"## {table.title}'s own",
        f"| {table.title} | assay has |\n|---|---|\n"
        + "\n".join(f"| `{each.name}` | {each.instead} |" for each in own),
    ]
    return "\n\n".join(parts) + "\n"


def _assay_names(each: DropIn, found: Mapping[str, DropIn]) -> list[str]:
    """The metrics of assay that count for a name, or for the classes that `task=` chooses from."""
    return list(dict.fromkeys(found[task].assay for task in each.tasks)) or [each.assay]


def _links(names: Collection[str], of_library: str) -> str:
    """Links to the sections about values that differ whose tables name one of these metrics."""
    named = re.compile("`(?:" + "|".join(map(re.escape, names)) + r")[`(]")
    places = [("compat", "What differs")] if of_library == "torchmetrics" else []
    pages = {page: (SRC.parents[1] / "docs" / f"{page}.md").read_text("utf-8") for page in ("compat", "differences")}
    places += [("differences", title) for title in re.findall(r"^## (.*)", pages["differences"], re.MULTILINE)]
    links = []
    for page, title in places:
        section = re.split(rf"^##+ {re.escape(title)}$", pages[page], flags=re.MULTILINE)[1]
        rows = [line for line in re.split(r"^##", section, flags=re.MULTILINE)[0].splitlines() if line[:1] == "|"]
        if any(named.search(line) for line in rows):
            text = "drop-in names" if page == "compat" else title
            links.append(f"[{text}](../{page}.md#{title.lower().replace(',', '').replace(' ', '-')})")
    return ", ".join(links)


def catalogue_page(picture: Callable[[type[Metric]], str]) -> str:
    """Every metric with its formula, its picture and its counterparts in other libraries.

    Args:
        picture: gives a figure of a metric as HTML; or an empty string.
    """
    parts = [
        "---\nsearch:\n  exclude: true\n---",
        "# Catalogue of metrics",
        "Every metric with its formula, a picture and its counterparts in other libraries. A picture shows how the "
        "value changes as predictions get worse, or the metric's own plot; it is computed when this page is built, by "
        "`docs/site/pictures.py`. Totals, means, extremes and metrics of metrics have none. The page of each metric "
        "has arguments, shapes, rounding and the source of the definition; [The metrics](metrics.md) says which values "
        "are better, and which confidence interval each has.",
    ]
    for family, kinds in families().items():
        parts.append(f"## {family.capitalize()}")
        for name, kind in kinds.items():
            text = sections(kind.__doc__)[""]
            others = (
                f"{title}: {', '.join(f'`{each}`' for each in names)}"
                for title, names in counterparts().get(name, {}).items()
            )
            heading, summary = f"### [{name}]({metric_page(name)})", text.partition("\n\n")[0]
            parts += [heading, summary, formula(text), picture(kind), "; ".join(others)]
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def counterparts() -> dict[str, dict[str, list[str]]]:
    """The classes of other libraries whose place a metric takes, by the metric and the title of the library."""
    found: dict[str, dict[str, list[str]]] = {}
    names = {name for kinds in families().values() for name in kinds}
    for row in catalogue(LIBRARIES):
        for name in _counterparts(row, names):
            found.setdefault(name, {}).setdefault(library(row.library).title, []).append(row.name)
    return found


def metric_page(name: str) -> str:
    """The path of the page of a metric."""
    return f"reference/metrics/{name}.md"


def family_anchor(family: str) -> str:
    """The anchor of a family on the page that lists all metrics."""
    return family.replace(" ", "-")


def navigation(paths: Iterable[str]) -> list[dict[str, object]]:
    """The entries of the navigation for these pages."""
    packages: list[dict[str, object]] = []
    kinds: list[str | dict[str, str]] = []
    for path in sorted(paths):
        name = Path(path).stem
        if name == "index":
            kinds.insert(0, path)  # the page that the title of the section leads to
        elif "/metrics/" in path:
            kinds.append({name.replace("_", " ").capitalize(): path})
        else:
            packages.append({name: path})
    return [*packages, {METRICS: kinds}]


def _counterparts(row: CatalogueRow, names: Collection[str]) -> list[str]:
    """Those of the metrics that take the place of a class: with its arguments, or with others."""
    if row.assay or re.search("metric of (this|that|the same) name", row.instead):
        return [row.assay or row.name]
    code = re.split(r",? (?:with|such as|where|which)\b|: ", row.instead)[0]
    return [name for name in dict.fromkeys(re.findall(r"\w+", code)) if name in names]


def formula(text: str) -> str:
    """The first formula in a description: one of LaTeX, a block of code, or code with an operator or a function."""
    described = text.partition("\n\n")[2]
    if found := re.search(r"\$\$.*?\$\$", described, re.DOTALL):
        return found[0]
    if found := re.search(r"(?:^    .*\n?)+", described, re.MULTILINE):
        code = textwrap.dedent(found[0]).strip()
        return f"```text\n{code}\n```" if "\n" in code else f"`{code}`"
    codes = (" ".join(code.split()) for code in re.findall(r"`([^`]+)`", described))
    return next((f"`{code}`" for code in codes if _CALCULATION.search(code)), "")


def _lists_names(module: str) -> bool:
    path = SRC.joinpath(*module.split(".")[1:])
    source = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return re.search(r"^__all__(?: =|, )", source.read_text("utf-8"), re.MULTILINE) is not None


def _purpose(module: str) -> str:
    return (import_module(module).__doc__ or "").strip().partition("\n\n")[0]


def _page(title: str, text: str, identifiers: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", text, *(f"::: {each}" for each in identifiers)]) + "\n"
