"""The README and the pages run as they stand, and point to what is there."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from differences import wrong_numbers

from navigation import section

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GUIDES = ("Tutorials", "How-to", "I come from")
"""The sections of the navigation whose pages are in Chinese, too."""
ENGLISH_ONLY = {
    *(
        "audit_rules.md",
        "coverage.md",
        "differences.md",
        "meshes.md",
        "migrate.md",
        "sql.md",
        "wrong_numbers_elsewhere.md",
    )
}
"""Pages of these sections that programs write, and a format."""


GUIDES_ELSEWHERE = ("overview.md", "quickstart.md", "own_metrics.md", "extending.md")
IN_CHINESE = {*GUIDES_ELSEWHERE, *(page for title in GUIDES for page in section(title))} - ENGLISH_ONLY
CHINESE = {DOCS / "zh" / page: DOCS / page for page in sorted(IN_CHINESE)}
CHINESE |= {ROOT / "README.zh-CN.md": ROOT / "README.md"}
"""Each page in Chinese with the one in English."""
SECONDS = ("audit.md", "quantize_analysis.md")
"""Pages whose code takes seconds."""
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)


def generated(page: Path) -> list[str]:
    return re.findall(r"^<!-- .*? -->.*?^<!-- .*? -->", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)


def runs(page: Path) -> bool:
    return bool(blocks(page)) and page not in CHINESE


def page_that_runs(page: Path) -> Any:
    marks = pytest.mark.exhaustive if page.name in SECONDS else ()
    return pytest.param(page, id=str(page.relative_to(ROOT)), marks=marks)


@pytest.mark.parametrize("page", [page_that_runs(page) for page in PAGES if runs(page)])
def test_examples_run_and_print_what_the_page_shows(page: Path) -> None:
    """A block of text behind one of Python is what that prints, on the pages that show it."""
    names: dict[str, object] = {}
    printing = page.parent != DOCS or page.name in ("quickstart.md", "own_metrics.md", "extending.md")
    shown = r"```python\n(.*?)```" + (r"(?:\n\n```text\n(.*?)```)?" if printing else "()")
    for block, output in re.findall(shown, page.read_text("utf-8"), re.DOTALL):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block, page.name, "exec"), names)
        assert not output or printed.getvalue() == output


def test_each_guide_has_a_page_in_chinese() -> None:
    assert not [str(page) for page in CHINESE if not page.exists()], "translate it, or add it to ENGLISH_ONLY"
    listed = (DOCS / "zh" / "english.md").read_text("utf-8")
    assert not [page for page in ENGLISH_ONLY if f"](../{page})" not in listed]
    others = {DOCS / "zh" / "english.md", *CHINESE}
    assert {*(DOCS / "zh").rglob("*.md")} <= others


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: str(page.relative_to(ROOT)))
def test_chinese_pages_have_the_headings_and_the_code_of_the_english_ones(page: Path) -> None:
    def outline(page: Path) -> list[str]:
        return re.findall(r"^#+ ", without_code(page), re.MULTILINE)

    def code(page: Path) -> list[str]:
        return re.findall(r"^```.*?^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)

    assert outline(page) == outline(CHINESE[page])
    assert code(page) == code(CHINESE[page])
    assert generated(page) == ([] if page.name == "README.zh-CN.md" else generated(CHINESE[page]))


@pytest.mark.parametrize("page", CHINESE, ids=lambda page: str(page.relative_to(ROOT)))
def test_chinese_pages_have_the_links_and_the_figures_of_the_english_ones(page: Path) -> None:
    """So a paragraph or a row that only one of them has is noticed."""
    in_chinese = {english: chinese for chinese, english in CHINESE.items()}

    def targets(page: Path) -> set[Path]:
        links = re.findall(r"\]\((?!\w+://)([^)#]+)[^)]*\)", without_code(page))
        return {page.parent.joinpath(link).resolve() for link in links}

    def figures(page: Path) -> list[str]:
        rows = "\n".join(re.findall(r"^\|.*", without_code(page), re.MULTILINE)).replace("1000 万", "10 million")
        return sorted(re.findall(r"\d[\d,.]*\d|\d", re.sub(r"\]\([^)]*\)", "", rows)))

    expected = {in_chinese.get(target, target) for target in targets(CHINESE[page])}
    assert expected - {page} <= targets(page)
    assert figures(page) == figures(CHINESE[page])


REPRODUCTIONS = {each.title: each for part in wrong_numbers().values() for each in part}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("title", REPRODUCTIONS)
def test_wrong_numbers_are_printed_as_the_page_says(title: str) -> None:
    """Each script stands alone. A number after ~ is rounding noise: it only has to differ from the next one."""
    script = ROOT / "examples" / "wrong_numbers" / f"{REPRODUCTIONS[title].script}.py"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(script.read_text("utf-8"), script.name, "exec"), {})
    lines, expected = printed.getvalue().splitlines(), REPRODUCTIONS[title].prints.splitlines()
    for line, expectation in zip(lines, expected, strict=True):
        label, is_noise, number = line.partition("~")
        if not is_noise:
            assert line == expectation
            continue
        right = next(each for each in expected[expected.index(expectation) :] if "~" not in each)
        assert label == expectation.partition("~")[0]
        assert float(number) != pytest.approx(float(right.split()[-1]), rel=0.05)


def test_the_wrong_numbers_of_the_readme_are_those_of_the_page() -> None:
    _, table, _ = re.split(r"<!-- /?wrong_numbers -->", (ROOT / "README.md").read_text("utf-8"))
    rows = re.findall(r"\.md#([\w-]+)\).*?\| (\S+) \| (\S+) \|", table)
    outputs = {_anchor(title): each.prints for title, each in REPRODUCTIONS.items()}
    assert len(rows) == 5
    for anchor, wrong, right in rows:
        numbers = outputs[anchor].split()
        assert wrong in numbers
        assert numbers.count(right) >= 2, f"{anchor}: {right} is to be the oracle's and assay's"


def _anchor(title: str) -> str:
    """The anchor that GitHub gives a heading; unlike `\\w`, it has no superscripts."""
    return re.sub(r"[^\w -]", "", title.lower().replace("²", "")).replace(" ", "-")


def test_the_change_that_the_readme_shows_gives_the_same_value(capsys: pytest.CaptureFixture[str]) -> None:
    (diff,) = re.findall(r"```diff\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.rand(60, 10, generator=generator), torch.randint(10, (60,), generator=generator)
    names = {"model": torch.nn.Identity(), "loader": list(zip(scores.split(20), labels.split(20), strict=True))}
    shown = []
    for other in "+-":
        program = "".join(line[1:] or "\n" for line in diff.splitlines(keepends=True) if line[0] != other)
        exec(program, dict(names))
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1] != ""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    missing = []
    for link, heading in re.findall(r"\]\((?!\w+://)([^)#]*)#?([^)]*)\)", without_code(page)):
        target = page.parent / link if link else page
        if not target.exists() or (heading and heading not in anchors(target)):
            missing.append(f"{link}#{heading}")
    assert not missing


def anchors(page: Path) -> set[str]:
    return {_anchor(title) for title in re.findall(r"^#+ (.*)", without_code(page), re.MULTILINE)}


def without_code(page: Path) -> str:
    return re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)


def commands() -> list[list[str]]:
    """The commands of the overview that stand in blocks, each as its words."""
    fenced = re.findall(r"^```(\w*)\n(.*?)^```", (DOCS / "overview.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    shell = [block for language, block in fenced if not language]
    lines = [part for block in shell for line in block.splitlines() for part in line.partition("#")[0].split("&&")]
    return [words for words in map(shlex.split, lines) if words and words[0] in ("assay", "python")]


def test_what_the_commands_of_the_overview_name_is_there() -> None:
    written: set[str] = set()
    for words in commands():
        options = dict(pairwise(words))
        named = [word for word in words[2:] if "/" in word and "=" not in word] if words[0] == "assay" else [words[1]]
        named += [options[each] for each in ("--data", "--eval", "--baseline") if each in options]
        for each in named:
            assert (ROOT / each.partition(":")[0]).exists() or each in written, f"{words}: no {each}"
        written |= {options["--out"]} if "--out" in options else set()
        written |= {words[2]} if words[0] == "python" else set()
    assert len(commands()) > 10


@pytest.mark.slow
def test_the_commands_of_the_overview_run(tmp_path: Path) -> None:
    for folder in ("examples", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    programs = {"assay": [sys.executable, "-m", "assay"], "python": [sys.executable]}
    for words in commands():
        done = subprocess.run(
            [*programs[words[0]], *words[1:]], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        found_bugs = words[1] == "audit" and done.returncode == 1
        assert done.returncode == 0 or found_bugs, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.exhaustive
def test_notebooks_run_and_print_what_they_show(notebook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells run in one namespace, as in a kernel; without one, since that would be a process and ten packages more."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    names: dict[str, object] = {}
    for cell in json.loads(notebook.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
            shown = ["".join(output["text"]) for output in cell["outputs"] if output["output_type"] == "stream"]
            assert printed.getvalue() == "".join(shown)
    plt.close("all")
