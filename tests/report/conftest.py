"""Two reports, one with everything in it and one whose every word is an attack; and a browser that shows them."""

from __future__ import annotations

import math

import pytest

from assay.render.html import to_html
from assay.report import (
    Bars,
    ConfusionPlot,
    Curve,
    Curves,
    Distribution,
    QueryDocument,
    QueryRanking,
    Reliability,
    Report,
    Residuals,
    Samples,
    Section,
    Series,
    Slice,
    Table,
    Value,
    WorstQueries,
)
from chromium import BROWSER, Browser

EVIL = "</script><script>alert('x')</script><img src=x onerror=alert(1)>\x1b[31m\x00\ud800 url(#a) #0a5c00 $x^ | [red]"


def everything(word: str = "name") -> Report:
    """A report with every kind of part; all of its text holds ``word``."""
    plots = (
        ConfusionPlot(word, (word, "b", "_c"), [[5, 1, 0], [0, 7, 2], [0, 0, 0]]),
        Curves(word, "roc", [Curve(word, [0, 0, 1], [0, 1, 1], 1.0), Curve("b", [0, 1], [0, 1], math.nan)]),
        Curves(word, "pr", [Curve(word, [1, 0], [0.5, 1.0])]),
        Reliability(word, [0, 0.5, 1], [math.nan, 0.8], [math.nan, 0.75], [0, 4], 0.05),
        Residuals(word, [1.0, 2.0, math.inf], [0.5, -0.5, math.nan], 3),
        Bars(word, (word, "b"), [0.25, math.nan], [0.2, math.nan], [0.3, math.nan]),
        Distribution(word, [0, 0.5, 1], [Series(word, [3, 0]), Series("b", [1, 2])], word),
    )
    values = (
        Value(word, 1 / 3, 0.3, 0.4, 2**60, word),
        Value("nan", math.nan),
        Value("inf", math.inf, -math.inf, math.inf),
    )
    cells = [(word, 1, 0.1, None), ("NaN", 2**70, math.nan, math.inf), (word, -1, -math.inf, None)]
    table = Table(word, (word, "int", "float", "none"), cells, note=word)
    ids = [f"{word} {i}" for i in range(4)]
    samples = Samples.pack(
        ids, {word: [0.5, 2.0, math.nan, 1.0]}, decision=[word, "b", "b", word], target=[word] * 4, data=word
    )
    slices = [
        Slice.of(
            f"{word} {name}", [Value(word, value, value - 0.1, value + 0.1, note=word, higher_is_better=False)], mask
        )
        for name, value, mask in (("x", 0.5, [1, 1, 0, 0]), ("y", 1.5, [0, 0, 1, 1]), ("tiny", 9.0, [1, 0, 0, 0]))
    ]
    documents = QueryDocument(1, 2, math.inf, 1.0, word, (word,)), QueryDocument(3, 3, -math.inf, 0.5, "b", ("",))
    queries = WorstQueries(word, 9, 3, (QueryRanking(word, 1 / 3, 2, 2, documents, (word,)),), (word,), (word,))
    whole = Section(
        word,
        values,
        (table,),
        plots,
        note=word,
        samples=samples,
        slices=slices,
        min_slice_size=2,
        worst_queries=queries,
    )
    sections = (whole, Section("empty"))
    return Report(word, sections, device=word, notes=(word,), duration_s=1.5, environment={word: word})


@pytest.fixture
def report() -> Report:
    return everything()


@pytest.fixture(scope="session")
def html() -> str:
    """The page of the report with everything in it: drawing it takes a second."""
    return to_html(everything().to_document())


@pytest.fixture
def hostile() -> Report:
    return everything(EVIL)


@pytest.fixture(scope="session")
def opened_browser(tmp_path_factory):
    """One Chromium for all tests: starting it takes longer than most of them."""
    if BROWSER is None:
        pytest.skip("there is no Chromium")
    opened = Browser(tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()


@pytest.fixture
def browser(opened_browser):
    """A browser in which no page writes on the console, and none asks for anything."""
    yield opened_browser
    assert opened_browser.console() == []
    assert opened_browser.requests() == []
