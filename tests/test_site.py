"""The documentation site: every page is in the navigation, and every public name is in the reference."""

from __future__ import annotations

import inspect
import re
import runpy
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

import assay.metrics
from assay.metrics.catalogue import public_metrics
from assay.metrics.documentation import sections
from assay.metrics.parsing import SHORT
from navigation import navigation
from navigation import pages as navigation_pages
from pages import Page
from thinning import TURNS, one_of_each

ROOT = Path(__file__).parents[1]
REFERENCE = runpy.run_path(str(ROOT / "docs" / "site" / "reference.py"))
METRIC_PAGES = runpy.run_path(str(ROOT / "docs" / "site" / "metric_pages.py"))
LANGUAGES = runpy.run_path(str(ROOT / "docs" / "site" / "languages.py"))
PICTURES = str(ROOT / "docs" / "site" / "pictures.py")
picture = runpy.run_path(PICTURES)["picture"]
WITHOUT_PICTURE = {
    "Arithmetic",
    "BitsPerByte",
    "ClassReport",
    "GeometricMean",
    "GroupStatRates",
    "Max",
    "Mean",
    "Min",
    "PerOutput",
    "PerSample",
    "PerceptualPathLength",
    "Quantile",
    "StatScores",
    "Sum",
    "Variance",
}
GENERATED = {"index.md", "index.zh-CN.md", "changelog.md", "contributing.md", "catalogue.md", "gallery/index.md"}
"""What `docs/site/hooks.py` makes beside the reference."""


class Entry(NamedTuple):
    """An entry of a navigation, as mkdocs has it."""

    title: str
    children: Sequence[Entry] = ()
    items: Sequence[Entry] = ()
    homepage: Entry | None = None


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    return REFERENCE["pages"]()


def metric_page(name: str) -> str:
    """The Markdown of the page of a metric."""
    return METRIC_PAGES["page"](getattr(assay.metrics, name), f"<figure>{name}</figure>")


def test_the_navigation_has_every_page_once() -> None:
    nav = [*navigation_pages(navigation())]
    written = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert sorted(nav) == sorted({*nav})
    written = {page for page in written if not page.startswith("upstream/")}  # which the page on other libraries links
    assert {*nav} - {"Reference"} == written | GENERATED, "add the page to `nav` in mkdocs.yml"


def test_every_public_name_is_in_the_reference(reference: dict[str, str]) -> None:
    texts = [*reference.values(), *map(metric_page, public_metrics())]
    documented = {line.removeprefix("::: ") for text in texts for line in text.splitlines()}
    public = REFERENCE["public_packages"]()
    assert {"assay", "assay.errors", "assay.integrations", "assay.metrics", "assay.quantize.analysis"} <= public.keys()
    for package, names in public.items():
        for name in names:
            # a metric is documented where it is defined
            home = getattr(assay.metrics, name).__module__ if package == "assay.metrics" else package
            assert f"{home}.{name}" in documented


def test_the_navigation_of_the_reference_has_all_of_its_pages(reference: dict[str, str]) -> None:
    listed = [*reference, METRIC_PAGES["INDEX"]]
    assert sorted(navigation_pages(REFERENCE["navigation"](listed))) == sorted(listed)


def test_drop_in_names_have_what_counts_them_and_links_to_differences(reference: dict[str, str]) -> None:
    page = reference["reference/assay.compat.torchmetrics.md"]
    row = next(line for line in page.splitlines() if line.startswith("| `CramersV` |"))
    assert "[CramersV](metrics/" in row
    assert "[drop-in names](../compat.md#what-differs)" in row
    assert "../differences.md#clusterings-categories-and-groups" in row
    assert "| `PIQA` |" not in page
    assert "| `BERTScore` | Meter(" in page.partition("## TorchMetrics's own")[2]
    assert "| `Precision` | [Precision](" in reference["reference/assay.compat.ignite.md"]
    for name, text in reference.items():
        for link in re.findall(r"\]\(((?:\.\./|metrics/)[\w./]+)", text):
            target = (Path(name).parent / link).as_posix().replace("reference/../", "")
            is_metric = target == f"reference/metrics/{Path(target).stem}.md" and Path(target).stem in public_metrics()
            assert target in reference or is_metric or (ROOT / "docs" / target).exists(), link


def test_the_catalogue_has_formulas_and_counterparts() -> None:
    page = REFERENCE["catalogue_page"](lambda kind: f"<figure>{kind.__name__}</figure>")
    recall = page.partition("### [Recall](")[2].partition("###")[0]
    assert "`tp / (tp + fn)`" in recall
    assert "<figure>Recall</figure>" in recall
    assert "`MulticlassRecall`" in recall
    assert page.count("### ") == sum(len(kinds) for kinds in assay.metrics.catalogue.families().values())
    for name, counterpart in (
        ("Precision", "TorchMetrics: `BinaryPrecision`"),
        ("SignalNoiseRatio", "TorchMetrics: `SignalNoiseRatio`"),
        ("FrechetDistance", "TorchMetrics: `FrechetInceptionDistance`; PyTorch Ignite: `FID`"),
        ("GroupDifference", "PyTorch Ignite: `SubgroupDifference`"),
        ("PeakSignalNoiseRatio", "TorchEval: `PeakSignalNoiseRatio`"),
    ):  # with the same arguments, and with others
        assert counterpart in page.partition(f"### [{name}](")[2].partition("###")[0]
    assert "`CompositionalMetric`" not in page  # an expression, whose example names metrics


@pytest.mark.parametrize("name", assay.metrics.catalogue.public_metrics())
def test_every_metric_has_a_formula(name: str) -> None:
    described = sections(getattr(assay.metrics, name).__doc__)[""]
    assert REFERENCE["formula"](described), "write it below the first line of the docstring"


def test_code_without_a_calculation_is_no_formula() -> None:
    formula = REFERENCE["formula"]
    assert formula("What it is.\n\n`a` are samples, `b` are pairs; `a / (a + b)`.") == "`a / (a + b)`"
    assert formula("What it is.\n\n    x / y\n    z = 1\n\nMore.") == "```text\nx / y\nz = 1\n```"
    assert formula("What it is.\n\nOf every `k`, as `map_cut`.") == ""


@one_of_each(lambda name: name, TURNS)
@pytest.mark.parametrize("name", assay.metrics.catalogue.public_metrics())
def test_every_metric_has_a_picture_in_which_something_changes(name: str) -> None:
    figure = picture(getattr(assay.metrics, name))
    if name in WITHOUT_PICTURE:
        assert figure == ""
        return
    assert figure, "add what the metric takes to _CHANGES in docs/site/pictures.py"
    page = Page(figure)
    (svg,) = page.all("svg")
    assert svg["role"] == "img"
    assert name in svg["aria-label"]
    assert len(figure) < 30_000
    assert "\n" not in figure
    for line in page.all("polyline"):
        heights = [point.partition(",")[2] for point in line["points"].split()]
        assert len(heights) > 6
        assert len({*heights}) > 2
        assert "nan" not in heights


@pytest.mark.parametrize("name", ["ROC", "WordErrorRate", "MeanAveragePrecision"])
def test_a_picture_has_the_same_bytes_in_each_build(name: str) -> None:
    again = runpy.run_path(PICTURES)["picture"]
    assert again(getattr(assay.metrics, name)) == picture(getattr(assay.metrics, name))


def test_the_picture_of_a_share_ends_where_the_metric_does() -> None:
    """Boxes that do not overlap have an IoU of 0 and a generalized IoU of 0 where they touch."""
    assert "IntersectionOverUnion falls from 1.0000 to 0.0000" in picture(assay.metrics.IntersectionOverUnion)
    assert "StringExactMatch falls from 1.0000 to 0.0000" in picture(assay.metrics.StringExactMatch)
    assert "PassAtK rises from 0.0000 to 1.0000" in picture(assay.metrics.PassAtK)


def test_every_metric_has_a_page_that_the_list_leads_to() -> None:
    made = METRIC_PAGES["pages"].__globals__
    without_states = dict.fromkeys(public_metrics().values(), "1 KiB")
    measured, made["state_size"] = made["state_size"], without_states.__getitem__
    try:
        pages = METRIC_PAGES["pages"](lambda kind: f"<figure>{kind.__name__}</figure>")
    finally:
        made["state_size"] = measured
    index = pages.pop("reference/metrics/index.md")
    assert pages.keys() == {f"reference/metrics/{name}.md" for name in public_metrics()}
    assert {*re.findall(r"^\| \[`\w+`\]\((\w+)\.md\)", index, re.MULTILINE)} == public_metrics().keys()
    for name in public_metrics():
        page = pages[f"reference/metrics/{name}.md"]
        assert re.findall(r"^# (\w+)", page, re.MULTILINE) == [name]
        assert f"<figure>{name}</figure>" in page
    for path, page in pages.items():
        for link in re.findall(r"\]\(((?!https?:)[^)#]+)", page):
            target = (ROOT / "docs" / path).parent.joinpath(link).resolve()
            assert target.exists() or target.name == "index.md", f"{path}: {link}"


def test_the_page_of_a_metric_has_the_facts_that_it_declares() -> None:
    page = metric_page("WordErrorRate")
    for row in (
        "| Better | lower |",
        "| Terms | exact |",
        "| Interval | [bootstrap](../../intervals.md) |",
        "| As a string | `worderrorrate`, `wer` |",
        "| Family | [text](index.md#text) |",
    ):
        assert row in page
    assert "- TorchMetrics: `WordErrorRate`" in page
    differences = page.partition("## What differs")[2]
    assert "a tab between words" in differences
    assert "`BinaryAUROC()`" not in differences
    assert "`BinaryAUROC()`: 0.75" in metric_page("AUROC").partition("## What differs")[2]


def test_the_example_on_the_page_is_that_of_the_docstring() -> None:
    """The page takes the docstring of the class whole, as mkdocstrings reads it."""
    as_markdown = runpy.run_path(str(ROOT / "docs" / "site" / "docstrings.py"))["as_markdown"]
    for name, kind in public_metrics().items():
        assert f"::: {kind.__module__}.{name}\n    options:" in metric_page(name)
        example = sections(kind.__doc__)["Example"].removeprefix("Example:\n")
        assert ">>> " in example
        assert f"Examples:\n{example}" in as_markdown(inspect.getdoc(kind) or "")


def test_the_state_of_a_page_is_what_a_meter_keeps() -> None:
    state_size = METRIC_PAGES["state_size"]
    assert state_size(assay.metrics.Accuracy).endswith("for any number of samples")
    # a float32 score and one byte of its label; docs/scale.md
    assert state_size(assay.metrics.AUROC) == "grows with the samples: 5 bytes for each"


@pytest.mark.parametrize("short", SHORT)
def test_an_abbreviation_stands_in_the_heading_that_the_search_ranks_first(short: str) -> None:
    page = metric_page(SHORT[short][0])
    heading = next(line for line in page.splitlines() if line.startswith("# "))
    assert re.search(rf"(?<!\w){short}(?!\w)", heading, re.IGNORECASE)


def test_common_metrics_are_found_by_their_chinese_names() -> None:
    names = METRIC_PAGES["NAMES"]
    assert names.keys() <= public_metrics().keys()
    assert sum("zh" in each for each in names.values()) >= 30
    assert "准确率" in METRIC_PAGES["aliases"]("Accuracy")
    found = [(name, each) for name in public_metrics() for each in METRIC_PAGES["aliases"](name)]
    assert [name for name, each in found if each == "准确率"] == ["Accuracy"]
    assert all(each.lower() != name.lower() for name, each in found)


def test_tables_of_metrics_lead_to_their_pages() -> None:
    linked = METRIC_PAGES["linked"]
    table = "<!-- metric_tables -->\n| `Recall` | not `Precision` |\n<!-- /metric_tables -->\n| `Recall` |"
    assert linked(table, "metrics.md") == table.replace("| `Recall`", "| [`Recall`](reference/metrics/Recall.md)", 1)
    families = "<!-- family_table -->\n| image quality | ROC, AUROC |\n<!-- /family_table -->"
    assert (
        "| [image quality](../reference/metrics/index.md#image-quality) | [ROC](../reference/metrics/ROC.md), "
        "[AUROC](../reference/metrics/AUROC.md) |"
    ) in linked(families, "zh/overview.md")


def test_search_of_pages_that_are_files_loads_nothing_from_the_network() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    assert "offline" in config["plugins"]
    search = next(each["search"] for each in config["plugins"] if isinstance(each, dict) and "search" in each)
    assert "zh" in search["lang"]
    # between the words of Chinese; else only names of one word are found
    assert re.split(search["separator"], "召回\u200b率 recall") == ["召回", "率", "recall"]
    assert "importScripts" in (ROOT / "docs" / "site" / "iframe-worker.js").read_text("utf-8")
    # the plugin leaves out its own script, which is elsewhere, if the name of one of ours has this word
    assert [script for script in config["extra"]["polyfills"] if "iframe-worker" in script] == ["site/iframe-worker.js"]
    assert (ROOT / "docs" / "site" / "iframe-worker.js").exists()


def test_each_page_has_a_switch_to_the_same_page_in_the_other_language() -> None:
    urls = {page: page.replace(".md", ".html") for page in navigation_pages(navigation())}
    for page in ("score.md", "zh/score.md"):
        switch = {each["lang"]: each["link"] for each in LANGUAGES["alternates"](page, urls)}
        assert switch == {"en": "score.html", "zh": "zh/score.html"}
    switch = {each["lang"]: each["link"] for each in LANGUAGES["alternates"]("coverage.md", urls)}
    assert switch == {"en": "coverage.html", "zh": "index.zh-CN.html"}


def test_pages_show_the_navigation_of_their_language() -> None:
    home = Entry("Home")
    chinese = Entry(LANGUAGES["CHINESE"], [Entry("首页"), Entry("概览")])
    whole = Entry("", [], [home, Entry("How-to"), chinese], home)
    assert [each.title for each in LANGUAGES["navigation"](whole, "score.md").items] == ["Home", "How-to"]
    shown = LANGUAGES["navigation"](whole, "zh/score.md")
    assert [each.title for each in shown.items] == ["首页", "概览"]
    assert shown.homepage.title == "首页"
    assert LANGUAGES["CHINESE"] in [title for entry in navigation() if isinstance(entry, dict) for title in entry]


def test_no_page_names_the_other_language_in_its_head_where_the_theme_looks_for_another_sitemap() -> None:
    links = '<link rel="alternate" href="../score.html" hreflang="en">\n  <link rel="alternate" href="x" hreflang="zh">'
    feed = '<link rel="alternate" href="changes.xml" type="application/rss+xml">'
    switch = "<a href='../score.html' hreflang='en'>English</a>"
    shown = LANGUAGES["without_links_in_head"](f"<head>{links}{feed}</head>{switch}")
    assert shown == f"<head>{feed}</head>{switch}"
