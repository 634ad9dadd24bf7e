"""``assay compare`` on stored reports."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import assay.cli
from assay.report import Comparison, Report, Samples, Section, Slice, Value
from thinning import one_of_each


def write(path, right, n=300, section="test", slices=()):
    samples = Samples.pack(range(n), {"correct": np.arange(n) < right}, data="made up")
    value = Value("accuracy", right / n, numerator="correct", higher_is_better=True)
    return Report(path.stem, [Section(section, [value], samples=samples, slices=slices)]).save(path)


@pytest.fixture
def reports(tmp_path):
    return [
        write(tmp_path / name / "report.json", right) for name, right in (("main", 250), ("new", 280), ("old", 240))
    ]


def call(monkeypatch, *arguments):
    """Run the command line; the exit code."""
    monkeypatch.setattr(sys, "argv", ["assay", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    return ended.value.code


def test_it_prints_a_table(reports, monkeypatch, capsys):
    assert call(monkeypatch, "compare", *reports) == 0
    printed = capsys.readouterr().out
    for word in ("new, old against main", "+0.1000", "-0.0333", "better", "worse", "for 2 tests"):
        assert word in printed


def test_it_prints_json_and_markdown(reports, monkeypatch, capsys):
    assert (
        call(
            monkeypatch, "compare", "--json", "--confidence-level", "0.9", "--correction", "bh", "--seed", "3", *reports
        )
        == 0
    )
    found = Comparison.from_json(capsys.readouterr().out)
    assert (found.confidence_level, found.correction, found.seed) == (0.9, "bh", 3)
    assert found.delta("accuracy", run="new").difference == pytest.approx(0.1)
    assert call(monkeypatch, "compare", "--markdown", "--flips", "2", *reports[:2]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("### new against main")
    assert "better: the first 2 of 30 by id" in printed


def test_slices_of_one_report_are_compared(monkeypatch, capsys, tmp_path):
    first = np.arange(300) < 150
    masks = {"half = first": first, "half = second": ~first}
    right = np.arange(300) < 250
    slices = [
        Slice.of(name, [Value("accuracy", right[mask].mean(), numerator="correct", higher_is_better=True)], mask)
        for name, mask in masks.items()
    ]
    path = write(tmp_path / "report.json", 250, slices=slices)
    between = [word for name in masks for word in ("--between", name)]
    assert call(monkeypatch, "compare", path, *between) == 0
    printed = capsys.readouterr().out
    assert "half = second against half = first" in printed
    assert "-0.3333" in printed
    assert "worse" in printed
    for refused in ([path, *between[:2]], [path, path, *between], [path, *between[:2], *between[:2]]):
        assert call(monkeypatch, "compare", *refused) == 2
        assert "two or more different slices of one report" in capsys.readouterr().err


def test_slices_are_compared_where_both_have_them(reports, monkeypatch, capsys, tmp_path):
    assert call(monkeypatch, "compare", "--slices", *reports) == 2
    assert "slices: got none that both have, expected one or more. Leave out" in capsys.readouterr().err
    half = np.arange(300) < 240
    pair = []
    for name, right in (("before", 250), ("after", 200)):
        part = Slice.of(
            "first", [Value("accuracy", min(right, 240) / 240, numerator="correct", higher_is_better=True)], half
        )
        pair.append(write(tmp_path / name / "report.json", right, slices=[part]))
    assert call(monkeypatch, "compare", *pair) == 0
    assert "By slice: 1 worse." in capsys.readouterr().out
    assert call(monkeypatch, "compare", "--no-slices", *pair) == 0
    printed = capsys.readouterr().out
    assert "By slice" not in printed
    assert "for 1 test;" in printed


def test_it_writes_a_page_and_json(reports, monkeypatch, tmp_path):
    page, out = tmp_path / "out" / "c.html", tmp_path / "out" / "c.json"
    assert call(monkeypatch, "compare", "--html", page, "--out", out, *reports) == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert len(Comparison.load(out).deltas) == 2


def test_files_that_are_no_reports_are_one_line_and_exit_code_2(reports, monkeypatch, capsys, tmp_path):
    main, new, _ = reports
    short, other, picture = tmp_path / "short.json", tmp_path / "other.json", tmp_path / "x.png"
    short.write_text(new.read_text("utf-8")[:-100], "utf-8")
    other.write_text('{"schema": "assay.report/9"}', "utf-8")
    picture.write_bytes(b"\x89PNG\r\n\xff")
    damaged = tmp_path / "damaged.json"
    damaged.write_text(new.read_text("utf-8").replace('"digest": "', '"digest": "0'), "utf-8")
    for path, message in {
        short: "short.json: got JSON that ends or breaks at character",
        other: "other.json: got schema 'assay.report/9', expected schema 'assay.report/7'",
        picture: "x.png: got bytes that are not UTF-8, expected a file that assay wrote. Check the path.",
        damaged: "damaged.json: got digest '0",
        tmp_path / "none.json": "No such file or directory",
        write(tmp_path / "dev.json", 3, section="dev"): "the baseline: got 'test', expected one of the sections of",
    }.items():
        assert call(monkeypatch, "compare", main, path) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith("assay: ")
        assert message in printed.err
        assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--confidence-level", "95"], "confidence_level: got 95.0, expected a number between 0 and 1"),
        (["--correction", "sidak"], "correction: got 'sidak', expected one of holm, bh, none"),
        (["--json", "--markdown"], "output: got --json and --markdown, expected one of the two. Leave one out."),
    ],
)
def test_options_that_cannot_be(reports, monkeypatch, capsys, arguments, message):
    assert call(monkeypatch, "compare", *reports, *arguments) == 2
    assert message in capsys.readouterr().err


def test_one_report_is_not_enough(reports, monkeypatch, capsys):
    assert call(monkeypatch, "compare", reports[0]) == 2
    assert "REPORTS: got 1 file, expected two or more. Name the baseline first" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", ["compare A B", "compare --json A B", "compare --markdown A B", "gate --min accuracy=0.5 A"]
)
@one_of_each()
def test_reports_are_read_without_torch(reports, command):
    words = command.replace("A", str(reports[0])).replace(" B", f" {reports[1]}")
    code = (
        f"import sys; sys.argv = ['assay', *{words.split()!r}]\n"
        "from assay.cli import main\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        "heavy = {'torch', 'scipy.stats', 'matplotlib', 'sklearn'} & set(sys.modules)\n"
        "print('\\n', json.dumps(sorted(heavy)))"
    )
    done = subprocess.run([sys.executable, "-c", "import json\n" + code], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
