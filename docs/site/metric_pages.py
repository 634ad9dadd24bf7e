"""One page for each metric, and the page that lists them: made when the site is built, from what metrics declare."""

from __future__ import annotations

import inspect
import re
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch

from assay import Meter
from assay.metrics.base import DIRECTIONS, Metric
from assay.metrics.catalogue import families, interval_of
from assay.metrics.documentation import sections
from assay.metrics.parsing import SHORT
from assay.metrics.samples import draw_columns, draw_for, examples

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "pages"))
from differences import DeliberateDifference, topics
from migration_pages import difference_table
from reference import METRICS, counterparts, family_anchor, metric_page

ROOT = Path(__file__).parents[2]
INDEX = f"{Path(metric_page('')).parent.as_posix()}/index.md"
NAMES: Mapping[str, Mapping[str, Any]] = tomllib.loads(Path(__file__).with_name("metric_names.toml").read_text("utf-8"))
_UP = "../" * INDEX.count("/")
_WORD = re.compile(r"IoU|SQuAD|[A-Z]+(?![a-z])\d*|[A-Z][a-z]+\d*")
_ACRONYM = re.compile(r"\(((?:[A-Z]-?){2,}\w*)\)")
_OPTIONS = (
    "heading: Definition",
    "toc_label: Definition",
    "show_bases: false",
    "show_labels: false",
    "show_symbol_type_heading: false",
    "show_symbol_type_toc: false",
)
"""How mkdocstrings shows a metric on its page."""
_BOOST = 4
"""How much higher the search ranks the page of a metric than other pages with the same words."""


def pages(picture: Callable[[type[Metric]], str]) -> dict[str, str]:
    """The Markdown of each page, by its path in the site.

    Args:
        picture: gives a figure of a metric as HTML; or an empty string.
    """
    kinds = {name: kind for members in families().values() for name, kind in members.items()}
    return {INDEX: index_page()} | {metric_page(name): page(kind, picture(kind)) for name, kind in kinds.items()}


def index_page() -> str:
    """Every metric by family, with its names and what it is."""
    parts = [
        f"# {METRICS}",
        "Each metric has a page: formula, arguments, example, counterparts in other libraries and what differs from "
        "them. The search finds it by its abbreviations, too. In the terminal, `assay metrics NAME` shows the same.",
    ]
    for family, kinds in families().items():
        rows = [
            f"| [`{name}`]({name}.md) | {_cell(', '.join(aliases(name)))} | {_cell(_summary(kind))} |"
            for name, kind in kinds.items()
        ]
        parts += [f"## {family.capitalize()}", "\n".join(["| metric | also | what it is |", "|---|---|---|", *rows])]
    return "\n\n".join(parts) + "\n"


def page(kind: type[Metric], figure: str) -> str:
    """The page of one metric; `figure` is its picture as HTML."""
    name = kind.__name__
    names = " · ".join(aliases(name))
    heading = f"# {name} <small>{names}</small>" if names else f"# {name}"
    parts = [
        f"---\ntitle: {name}\nsearch:\n  boost: {NAMES.get(name, {}).get('boost', _BOOST)}\n---",
        heading,
        figure,
        _facts(kind),
        "\n".join([f"::: {kind.__module__}.{name}", "    options:", *(f"      {each}" for each in _OPTIONS)]),
        _elsewhere(name),
        _differences(name),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


@cache
def aliases(name: str) -> tuple[str, ...]:
    """The other names of a metric: abbreviations, its name in words, and its name in Chinese.

    Example:
        >>> aliases("WordErrorRate")
        ('WER', 'word error rate', '词错误率')
    """
    short = [word.upper() for word, (of, _) in SHORT.items() if of == name]
    acronyms = _ACRONYM.findall(_summary(getattr(sys.modules[METRICS], name)))
    words = _WORD.findall(name)
    spelled = [" ".join(word if word.isupper() else word.lower() for word in words)] if len(words) > 1 else []
    written = NAMES.get(name, {})
    unique: dict[str, str] = {}
    for each in (*short, *acronyms, *written.get("names", ()), *spelled, *written.get("zh", ())):
        unique.setdefault(each.lower(), each)
    return tuple(unique.values())


def linked(markdown: str, page: str) -> str:
    """A page whose tables of metrics lead to the pages of these metrics."""
    up = "../" * page.count("/")
    any_name = "|".join(name for kinds in families().values() for name in kinds)

    def link(match: re.Match[str]) -> str:
        return f"[{match[0]}]({up}{metric_page(match[0].strip('`'))})"

    def family(match: re.Match[str]) -> str:
        title = match[1]
        members = re.sub(rf"\b(?:{any_name})\b", link, match[2])
        return f"| [{title}]({up}{INDEX}#{family_anchor(title)}) | {members} |"

    forms: Mapping[str, tuple[str, Callable[[re.Match[str]], str]]] = {
        "family_table": (r"^\| ([a-z ]+) \| (?!metrics \()(.*) \|$", family),
        "metric_tables": (rf"(?<=^\| )`(?:{any_name})`", link),
        "interval_table": (rf"`(?:{any_name})`", link),
    }
    for table, (pattern, replace) in forms.items():
        block = re.compile(rf"<!-- {table} -->.*?<!-- /{table} -->", re.DOTALL)
        markdown = block.sub(lambda found: re.sub(pattern, replace, found[0], flags=re.MULTILINE), markdown)  # noqa: B023
    return markdown


@cache
def state_size(kind: type[Metric]) -> str:
    """How large what a meter keeps for a metric is, and how it grows: measured on 64 and 128 samples."""
    few, many = (_state_bytes(next(examples(kind)), count) for count in (64, 128))
    per_sample = (many - few) / 64
    if per_sample < 1:  # the digits of counts in the description
        return f"{few / 1024:.1f} KiB, for any number of samples"
    return f"grows with the samples: {per_sample:.0f} bytes for each"


def _state_bytes(metric: Metric, count: int) -> int:
    generator = torch.Generator().manual_seed(0)
    meter = Meter(metric)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        meter.update(*draw_for(metric)(generator, count), **draw_columns(metric, generator, count))
    return sum(each.nbytes for each in meter.state_dict().values() if isinstance(each, torch.Tensor))


def _facts(kind: type[Metric]) -> str:
    name, file = kind.__name__, Path(inspect.getfile(kind)).relative_to(ROOT).as_posix()
    written = [name.lower(), *(short for short, (of, _) in SHORT.items() if of == name)]
    rows = {
        "Better": DIRECTIONS[kind.higher_is_better] or "neither higher nor lower",
        "Terms": "exact" if kind.exact_terms else "rounded to float32 for each sample, added exactly",
        "Interval": f"[{interval_of(kind)}]({_UP}intervals.md)",
        "State": f"{state_size(kind)} ([what grows with what]({_UP}scale.md))",
        "As a string": ", ".join(f"`{each}`" for each in written),
        "Family": f"[{kind.family}](index.md#{family_anchor(kind.family)})",
        "Code": f"[`{file}`]({_UP}../{file})",
    }
    return "\n".join(["| fact | value |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items())])


def _elsewhere(name: str) -> str:
    """The counterparts in other libraries."""
    found = counterparts().get(name, {})
    if not found:
        return ""
    lines = [f"- {title}: {', '.join(f'`{each}`' for each in names)}" for title, names in found.items()]
    return "\n".join(["## In other libraries", "", *lines, "", f"[Every name, with its arguments]({_UP}migrate.md)."])


def _differences(name: str) -> str:
    """The deliberate differences whose text or examples name the metric or a counterpart of it."""
    theirs = [each for names in counterparts().get(name, {}).values() for each in names]
    tables = []
    for topic in topics():
        if found := [each for each in topic.differences if _concerns(each, name, theirs)]:
            tables.append(re.sub(r"\]\((?!\w+://|#)", f"]({_UP}", difference_table(topic, found)))
    rest = (
        f"Differences that concern many metrics, and the tests of all: [Deliberate differences]({_UP}differences.md)."
    )
    return "\n\n".join(["## What differs", *tables, rest])


def _concerns(difference: DeliberateDifference, name: str, theirs: Iterable[str]) -> bool:
    if any(re.match(rf"{name}\(", each.ours) or not {*each.names}.isdisjoint(theirs) for each in difference.examples):
        return True
    own = re.compile(rf"`{name}[`(]")
    return any(map(own.search, (difference.case, difference.assay))) or any(
        re.search(rf"`{re.escape(each)}[`(]", difference.theirs) for each in theirs
    )


def _summary(kind: type[Metric]) -> str:
    return " ".join(sections(kind.__doc__)[""].partition("\n\n")[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
