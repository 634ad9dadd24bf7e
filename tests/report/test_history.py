"""Histories over reports that were made up: which runs are compared, what changed, and what cannot be read."""

from dataclasses import replace

import numpy as np
import pytest

import assay.cli
from assay.errors import ConfigError
from assay.render.document import DataGrid
from assay.render.live_grids import whisker
from assay.render.svg import to_svg
from assay.render.trends import Trend, TrendPoint, sparkline
from assay.report import History, Report, Samples, Section, Value, compare, history
from assay.report.slices import Slice

N = 300


def report(day, right, n=N, start=0, title="run"):
    """A run in which the first samples are right."""
    samples = Samples.pack(range(start, start + n), {"correct": np.arange(n) < right})
    values = [
        Value("accuracy", right / n, right / n - 0.1, right / n + 0.1, n, "an interval", 0.95, True, "correct"),
        Value("loss", 1 - right / n, count=n, higher_is_better=False),
    ]
    return Report(title, [Section("test", values, samples=samples)], created=f"2026-11-{day:02d}T09:00:00+00:00")


def changes(found, metric="accuracy"):
    values = next(each for each in found.metrics if each.name == metric).values
    return [(each.run, each.data, each.previous, each.change and each.change.verdict) for each in values]


RUNS = [report(12, 280), report(10, 240), report(11, 241), report(13, 150)]
NAMES = ["c", "a", "b", "d"]


def test_runs_are_in_the_order_of_time_and_each_is_compared_with_the_one_before():
    found = history(RUNS, names=NAMES)
    assert [run.name for run in found.runs] == ["a", "b", "c", "d"]
    assert changes(found) == [
        ("a", 1, "", None),
        ("b", 1, "a", "no evidence"),
        ("c", 1, "b", "better"),
        ("d", 1, "c", "worse"),
    ]
    delta = found.metrics[0].values[2].change
    direct = compare(RUNS[2], RUNS[0], names=["b", "c"], flips=0).delta("accuracy")
    assert delta == direct
    assert delta.paired


def test_runs_on_other_samples_are_a_line_of_their_own():
    runs = [report(1, 240), report(2, 100, n=150), report(3, 290), report(4, 140, n=150), report(5, 240, start=7)]
    found = history(runs, names=list("abcde"))
    assert changes(found) == [
        ("a", 1, "", None),
        ("b", 2, "", None),
        ("c", 1, "a", "better"),
        ("d", 2, "b", "better"),
        ("e", 3, "", None),
    ]
    assert found.not_comparable == (
        "test: a and b have other samples: 150 samples are in the first only, 0 in the second only",
        "test: d and e have other samples: 7 samples are in the first only, 157 in the second only",
    )
    bare = [
        replace(each, sections=[replace(each.sections[0], samples=None, values=[Value("x", 1.0, count=n)])])
        for each, n in zip(runs[:2], (N, 150), strict=True)
    ]
    assert "x rests on 150 samples, and not on 300" in history(bare, names=["a", "b"]).not_comparable[0]


def test_every_rendering_says_what_changed(tmp_path):
    found = history(RUNS, names=NAMES)
    for shown in (found.to_text(80), found.to_markdown(), found.to_html(tmp_path / "page.html").read_text()):
        for word in ("accuracy, run by run", "better", "worse", "McNemar", "+0.1300"):
            assert word in shown
    assert max(map(len, found.to_text(80).splitlines())) <= 80
    page = (tmp_path / "page.html").read_text()
    assert "From 0.8000 (a) to 0.5000 (d). Worse: d. Better: c." in page
    assert History.from_json(found.to_json()) == found


def test_intervals_of_a_metric_are_drawn_on_one_scale():
    blocks = history(RUNS, names=NAMES).to_document().chapters[0].blocks
    grid = next(each for each in blocks if isinstance(each, DataGrid) and each.name == "accuracy, run by run")
    cells = [cell for row in grid.rows for cell in row.cells if cell.span is not None]
    furthest = max(abs(end) for cell in cells for end in cell.span)
    assert [cell.reach for cell in cells] == [furthest] * 3
    drawn = [max(abs(end - 50) for end in whisker(cell)[:2]) for cell in cells]
    assert sorted(drawn)[-1] == 48
    assert sorted(drawn)[-2] < 48


def test_one_report_shows_its_values_and_no_change():
    shown = history(RUNS[0]).to_text(80)
    assert "There is one report" in shown
    assert "0.9333" in shown
    assert "change  " not in shown


def test_filters():
    found = history(RUNS, names=NAMES, metrics=["loss"], last=2, sections=["test"])
    assert [run.name for run in found.runs] == ["c", "d"]
    assert [each.name for each in found.metrics] == ["loss"]
    assert [run.name for run in history(RUNS, names=NAMES, since="2026-11-12").runs] == ["c", "d"]


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        (RUNS, {"metrics": ["f1"]}, "metrics: got f1, expected some of accuracy, loss"),
        (RUNS, {"sections": ["train"]}, "sections: got train, expected some of test"),
        (RUNS, {"since": "yesterday"}, "since: got 'yesterday', expected a time"),
        (RUNS, {"since": "2027-01-01"}, "reports: got none since 2027-01-01"),
        ([*RUNS, "nowhere.json"], {"since": "2027-01-01"}, "reports: got none since 2027-01-01"),
        (RUNS, {"last": 0}, "last: got 0, expected 1 or more"),
        (RUNS, {"names": ["a"]}, "names: got 1 names, expected 4"),
        ("no*such.json", {}, r"reports: got no file that matches 'no\*such.json'"),
        ([], {}, "reports: got none, expected one or more"),
        ("nowhere.json", {}, r"none that can be read \(nowhere.json"),
    ],
)
def test_what_is_asked_for_and_not_there(sources, options, message):
    with pytest.raises(ConfigError, match=message):
        history(sources, **options)


@pytest.fixture
def folder(tmp_path):
    for name, each in zip(NAMES, RUNS, strict=True):
        each.save(tmp_path / "runs" / name / "report.json")
    RUNS[0].save(tmp_path / "runs" / "other.name.json")
    (tmp_path / "runs" / "settings.json").write_text("{}")
    (tmp_path / "runs" / "e").mkdir()
    (tmp_path / "runs" / "e" / "report.json").write_text(RUNS[0].to_json()[:500])
    return tmp_path / "runs"


def call(monkeypatch, *arguments):
    monkeypatch.setattr("sys.argv", ["assay", "history", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        assay.cli.main()
    return ended.value.code


def test_a_folder_has_all_reports_and_damaged_files_are_named(folder, monkeypatch, capsys):
    files = "--html", folder / "h.html", "--out", folder / "h.json"
    assert call(monkeypatch, folder, *files, "--metric", "accuracy") == 0
    printed = capsys.readouterr().out
    assert "Not read" in printed
    assert "5 runs" in printed
    assert "loss" not in printed.partition("Not read")[0]
    found = History.load(folder / "h.json")
    assert len(found.runs) == 5
    assert "JSON that ends or breaks" in found.not_read[0]
    assert (folder / "h.html").stat().st_size > 5000
    assert call(monkeypatch, f"{folder}/[ab]", "--json") == 0
    assert [run.name for run in History.from_json(capsys.readouterr().out).runs] == ["a", "b"]
    assert call(monkeypatch, folder / "a", "--markdown") == 0
    assert capsys.readouterr().out.startswith("### History of run")


def test_commands_that_cannot_run(folder, monkeypatch, capsys):
    assert call(monkeypatch) == 2
    assert call(monkeypatch, folder / "e") == 2
    assert call(monkeypatch, folder, "--json", "--markdown") == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[1] for line in lines[-2:]] == [" reports", " output"]


def test_a_trend_without_values_and_with_gaps_can_be_drawn():
    assert Trend("x", ("a",), ()).summary() == "No values."
    assert sparkline([float("nan")]) == ""
    assert sparkline([2.0, 2.0]) == "▅▅"
    points = (TrendPoint(0, float("nan")), TrendPoint(1, 0.5, 0.4, 0.6, "worse"), TrendPoint(2, float("inf")))
    assert to_svg(Trend("<x>", ("a", "b", "c"), (points,))).startswith("<svg")


def test_a_report_whose_time_is_none_is_named_and_the_others_are_shown(tmp_path):
    for name, created in (("a", "2026-11-20"), ("b", "yesterday"), ("c", "2026-11-22")):
        replace(report(1, 240), created=created).save(tmp_path / f"{name}.json")
    found = history(tmp_path)
    assert [run.name for run in found.runs] == ["a", "c"]
    assert len(found.not_read) == 1
    assert "b.json" in found.not_read[0]
    assert "yesterday" in found.not_read[0]


def test_a_file_that_is_named_twice_is_one_run(tmp_path):
    report(1, 240).save(tmp_path / "a.json")
    report(2, 250).save(tmp_path / "b.json")
    assert len(history([tmp_path, tmp_path / "a.json", f"{tmp_path}/*.json"]).runs) == 2


def sliced(day, right_of_f, title="run"):
    """A run whose first half is of sex f, and all of whose other half is right."""
    is_f = np.arange(N) < N // 2
    correct = ~is_f | (np.arange(N) < right_of_f)
    samples = Samples.pack(range(N), {"correct": correct})

    def values(mask):
        share, count = correct[mask].mean(), int(mask.sum())
        return [Value("accuracy", share, count=count, numerator="correct", higher_is_better=True)]

    parts = [Slice.of(f"sex = {name}", values(mask), mask) for name, mask in (("f", is_f), ("m", ~is_f))]
    section = Section("test", values(is_f | ~is_f), samples=samples, slices=parts)
    return Report(title, [section], created=f"2026-11-{day:02d}T09:00:00+00:00")


def test_slices_are_lines_of_their_own(tmp_path):
    runs = [sliced(10, 100), sliced(11, 101), sliced(12, 60)]
    found = history(runs, names=list("abc"), slices=["sex=f"])
    assert [each.section for each in found.metrics] == ["test", "test: sex = f"]
    part = found.metrics[1].values
    assert [each.value for each in part] == [100 / 150, 101 / 150, 60 / 150]
    assert [each.count for each in part] == [150] * 3
    assert [each.change and each.change.verdict for each in part] == [None, "no evidence", "worse"]
    direct = compare(runs[1].of_slice("sex = f"), runs[2].of_slice("sex = f"), names=["b", "c"], flips=0)
    assert part[2].change == replace(direct.delta("accuracy"), section="test: sex = f")
    assert [each.section for each in history(runs, slices=["sex"]).metrics] == [
        "test",
        "test: sex = f",
        "test: sex = m",
    ]
    assert [each.section for each in history(runs).metrics] == ["test"]
    assert History.from_json(found.to_json()) == found
    with pytest.raises(ConfigError, match="slices: got 'sex=x', expected one of 'sex = f', 'sex = m'"):
        history(runs, slices=["sex=x"])
    with pytest.raises(ConfigError, match="slices: got 'sex', expected reports with slices"):
        history(RUNS, slices=["sex"])


def test_the_page_has_the_slices_that_are_named_on_the_command_line(tmp_path, monkeypatch):
    for k in range(2):
        sliced(10 + k, 100 - k).save(tmp_path / f"{k}" / "report.json")
    page = tmp_path / "history.html"
    assert not call(monkeypatch, tmp_path, "--slice", "sex=m", "--html", page)
    text = page.read_text("utf-8")
    assert "test: sex = m" in text
    assert "test: sex = f" not in text


def test_a_slice_that_only_some_runs_have_is_a_line_of_those():
    found = history([report(10, 240), sliced(11, 100), report(12, 240), sliced(13, 101)], slices=["sex=m"])
    assert [len(each.values) for each in found.metrics if each.section == "test: sex = m"] == [2]


def test_the_level_over_all_runs_is_spent_run_by_run():
    runs = [report(day, right) for day, right in enumerate([240, 240, 240, 247], 1)]
    each_run, over_all = (history(runs, sequential=which).metrics[0].values[-1].change for which in (False, True))
    assert over_all.p == each_run.p
    assert over_all.corrected == pytest.approx(12 * each_run.corrected)
    assert (each_run.verdict, over_all.verdict) == ("better", "no evidence")
    assert history(runs, sequential=True, last=2).metrics[0].values[-1].change.corrected == over_all.corrected
    assert "over all runs" in history(runs, sequential=True).to_markdown()
    assert "over all runs" not in history(runs).to_markdown()
