"""The page about the audit of other libraries says what the audit says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from assay.audit.running.runner import audit
from assay.pretend.native_engine.build import why_not
from assay.pretend.session import pretend

PAGE = (Path(__file__).parents[3] / "docs" / "audit_of_other_libraries.md").read_text("utf-8")
REPORTS = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
ROWS = re.findall(r"^\| (torcheval|torchmetrics|ignite) \| `([^`]+)` \| ([^|]*) \| ([a-z-]+) \|", PAGE, re.MULTILINE)
FOLDERS = {"torcheval": "torcheval/", "torchmetrics": "torchmetrics/", "ignite": "ignite/metrics/"}

pytestmark = [
    pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of the libraries' imports
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


def lines_on_the_page(library: str) -> set[tuple[str, str]]:
    """The lines with an error and their rules, as the page has them."""
    rows = [(path, rule) for name, path, _, rule in ROWS if name == library]
    return {(str(Path(FOLDERS[library], path)).replace("metrics/../", ""), rule) for path, rule in rows}


def lines_found(library: str, targets: tuple[str, ...]) -> set[tuple[str, str]]:
    """The lines with an error that the audit finds now."""
    found = [each for target in targets for each in audit(target).findings if each.severity == "error"]
    return {(each.where.rpartition("site-packages/")[2], each.rule) for each in found}


@pytest.mark.parametrize(
    ("library", "targets"),
    [
        pytest.param("torcheval", ("torcheval.metrics",), marks=pytest.mark.slow),
        ("ignite", ("ignite.metrics:PSNR", "ignite.metrics:RocCurve")),
        pytest.param(
            "torchmetrics",
            (
                "torchmetrics.audio:SignalDistortionRatio",
                "torchmetrics.detection",
                "torchmetrics.image.fid",
                "torchmetrics.image:MemorizationInformedFrechetInceptionDistance",
                "torchmetrics.text:ExtendedEditDistance",
            ),
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.exhaustive  # it audits every metric of other libraries
def test_the_table_of_errors_is_what_the_audit_finds(library, targets):
    assert lines_found(library, targets) == lines_on_the_page(library)


@pytest.mark.parametrize(
    ("number", "device", "error", "text"),
    [
        (
            0,
            "cuda",
            RuntimeError,
            "got self is on cuda:0, different from other tensors on cpu (when checking argument in",
        ),
        (1, "cuda", AssertionError, "the state is on cpu"),
        (
            2,
            "mps",
            TypeError,
            "Cannot convert a MPS Tensor to float64 dtype as the MPS framework doesn't support float64.",
        ),
        (3, "cuda", RuntimeError, "but found at least two devices, cuda:0 and cpu!"),
    ],
)
def test_each_report_raises_what_it_says(number, device, error, text):
    assert len(REPORTS) == 4
    with pretend(device), pytest.raises(error, match=re.escape(text)):
        exec(compile(REPORTS[number], f"report {number}", "exec"), {})
