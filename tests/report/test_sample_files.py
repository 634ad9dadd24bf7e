"""Samples of more than JSON should hold: in an Arrow file beside the report, and compared as others are."""

import dataclasses
import json
import pickle
import shutil

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from assay import Accuracy, MeanSquaredError, evaluate, score
from assay.errors import StateError
from assay.report import Report, compare
from report.runs import column, run

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def few(monkeypatch):
    """As if 50 samples were too many for JSON."""
    for module in ("report.per_sample.sample_files", "evaluation.arguments.preparation"):
        monkeypatch.setattr(f"assay.{module}.MOST_SAMPLES", 50)


@pytest.fixture
def saved(few, tmp_path):
    order = np.random.default_rng(1).permutation(200)
    reports = run("a", seed=1), run("b", seed=2, order=order)
    for report in reports:
        report.save(tmp_path / report.title / "report.json")
    return reports, tmp_path


def as_of_one_moment(comparison):
    """The comparison without when it was made: two that follow each other may be of different seconds."""
    return dataclasses.replace(comparison, created="")


def file_in(folder):
    (file,) = folder.glob("*.arrow")
    return file


def test_a_report_of_many_samples_names_a_file(saved):
    (report, _), folder = saved
    text = (folder / "a" / "report.json").read_text()
    samples = json.loads(text)["sections"][0]["samples"]
    name = file_in(folder / "a").name
    assert [each["values"]["data"] for each in samples["columns"]] == [f"{name}#column correct", f"{name}#column loss"]
    assert samples["ids"]["form"] == "range"
    loaded = Report.load(folder / "a")
    for name in ("correct", "loss"):
        assert column(loaded, name).dtype == column(report, name).dtype
        assert np.array_equal(column(loaded, name), column(report, name))
    again = loaded.sections[0].samples
    assert np.array_equal(again.target.values, report.sections[0].samples.target.values)
    assert np.array_equal(pickle.loads(pickle.dumps(loaded)).sections[0].samples.target.values, again.target.values)
    assert len(again) == 200


def test_reports_with_files_compare_as_those_in_memory(saved):
    reports, folder = saved

    def compared(*pair):
        """To 12 digits: products of matrices depend on where the arrays lie in memory."""
        found = json.loads(compare(*pair).to_json(), parse_float=lambda digits: f"{float(digits):.12g}")
        return {key: value for key, value in found.items() if key not in ("created", "digest")}

    expected = compared(*reports)
    assert compared(Report.load(folder / "a"), Report.load(folder / "b")) == expected
    assert compared(Report.load(folder / "a"), reports[1]) == expected
    assert all(delta["paired"] for delta in expected["deltas"][:2])


def test_a_file_that_is_missing_or_damaged_is_one_line(saved):
    _, folder = saved
    file = file_in(folder / "a")
    whole = file.read_bytes()
    file.write_bytes(whole[:700] + bytes([whole[700] ^ 1]) + whole[701:])
    with pytest.raises(StateError, match=r"report\.[0-9a-f]+\.arrow: got digest") as raised:
        compare(Report.load(folder / "a"), Report.load(folder / "b"))
    file.write_bytes(whole[:-40])
    with pytest.raises(StateError, match="got digest"):
        column(Report.load(folder / "a"), "loss")
    file.unlink()
    with pytest.raises(StateError, match="got no such file") as raised:
        compare(Report.load(folder / "a"), Report.load(folder / "b"))
    assert "\n" not in str(raised.value)
    without = Report.from_json((folder / "a" / "report.json").read_text())
    with pytest.raises(StateError, match=r"Report\.load"):
        column(without, "loss")


def test_a_report_is_saved_elsewhere_with_its_samples(saved):
    (report, _), folder = saved
    loaded = Report.load(folder / "a")
    loaded.save(folder / "a" / "report.json")  # where it is
    loaded.save(folder / "c" / "report.json")
    shutil.rmtree(folder / "a")
    assert np.array_equal(column(Report.load(folder / "c"), "loss"), column(report, "loss"))
    shutil.move(folder / "c", folder / "d")
    assert np.array_equal(column(Report.load(folder / "d"), "loss"), column(report, "loss"))


def test_a_report_that_is_written_again_leaves_no_older_file(saved, monkeypatch):
    reports, folder = saved
    path = folder / "a" / "report.json"
    old, text = file_in(folder / "a"), path.read_bytes()

    def refuse(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("assay._records.write_text", refuse)
        with pytest.raises(OSError, match="No space"):
            reports[1].save(path)
    assert path.read_bytes() == text
    assert np.array_equal(column(Report.load(path), "loss"), column(reports[0], "loss"))
    reports[1].save(path)
    assert file_in(folder / "a") != old
    assert np.array_equal(column(Report.load(path), "loss"), column(reports[1], "loss"))
    shutil.copy(path, folder / "a" / "copy.json")
    reports[0].save(path)  # its older file is still named by the copy
    assert len(list((folder / "a").glob("*.arrow"))) == 2
    for name, report in (("copy", reports[1]), ("report", reports[0])):
        assert np.array_equal(column(Report.load(folder / "a" / f"{name}.json"), "loss"), column(report, "loss"))
    reports[0].save(path)
    assert len(list((folder / "a").glob("*.arrow"))) == 2
    few = dataclasses.replace(reports[0], sections=())
    few.save(path)
    assert list((folder / "a").glob("*.arrow")) == [file_in_use(folder / "a" / "copy.json")]


def file_in_use(path):
    (name,) = {each["values"]["data"].partition("#")[0] for each in columns_of(path)}
    return path.parent / name


def columns_of(path):
    return json.loads(path.read_text())["sections"][0]["samples"]["columns"]


def test_an_older_file_at_a_url_is_removed(few):
    fsspec = pytest.importorskip("fsspec")
    for report in (run("a", seed=1), run("b", seed=2)):
        report.save("memory://again/report.json")
    assert len(fsspec.filesystem("memory").glob("/again/*.arrow")) == 1
    assert column(Report.load("memory://again/report.json"), "loss")[0] == column(report, "loss")[0]


def test_files_of_samples_may_be_at_urls(few):
    pytest.importorskip("fsspec")
    first, second = run("a", seed=1), run("b", seed=2)
    for report in (first, second):
        report.save(f"memory://samples/{report.title}.json")
    loaded = [Report.load(f"memory://samples/{name}.json") for name in "ab"]
    assert as_of_one_moment(compare(*loaded)) == as_of_one_moment(compare(first, second))


def measured(shift, **more):
    random = np.random.default_rng(0)
    y = torch.from_numpy(random.integers(0, 3, 300))
    scores = torch.from_numpy(random.random((300, 3))) + shift * torch.nn.functional.one_hot(y, 3)
    data = TensorDataset(scores, y, y % 2)
    slices = {"odd": 2}
    return evaluate(lambda x: x, data, Accuracy(num_classes=3), slices=slices, inputs=0, target=1, **more)


@pytest.mark.parametrize("most", [100, 1000])
def test_an_evaluation_keeps_as_many_as_it_is_told(few, tmp_path, most):
    reports = [measured(shift, max_kept_samples=most, device="cpu") for shift in (0.1, 0.4)]
    for k, report in enumerate(reports):
        report.save(tmp_path / str(k) / "report.json")
    assert len(list(tmp_path.rglob("*.arrow"))) == (2 if most == 1000 else 0)
    found = compare(*(Report.load(tmp_path / str(k)) for k in range(2)))
    assert as_of_one_moment(found) == as_of_one_moment(compare(*reports))
    methods = {delta.method for delta in found.deltas}
    assert [delta.slice for delta in found.deltas] == ["", "odd = 0", "odd = 1"]
    assert all(("McNemar" in method) == (most == 1000) for method in methods), methods
    assert any("max_kept_samples" in note for note in reports[0].notes) == (most == 100)


def test_scored_tables_keep_their_values_in_files(few, tmp_path):
    table = pa.table({"p": np.arange(300) / 7, "y": np.arange(300) / 8, "id": [f"row {k}" for k in range(300)]})
    options = {"preds": "p", "target": "y", "ids": "id"}
    report = score(table, MeanSquaredError(), max_kept_samples=300, **options)
    report.save(tmp_path / "report.json")
    loaded = Report.load(tmp_path)
    assert loaded.sections[0].samples.ids.values.tolist() == report.sections[0].samples.ids.values.tolist()
    assert compare(loaded, loaded).deltas[0].p == 1.0


def test_without_pyarrow_no_more_are_kept_than_json_holds(few, monkeypatch):
    for module in ("arguments.preparation", "observe.per_sample"):
        monkeypatch.setattr(f"assay.evaluation.{module}.find_spec", lambda name: None)
    report = measured(0.1, max_kept_samples=1000, device="cpu")
    assert report.sections[0].samples is None
    assert any("assay[tables]" in note for note in report.notes)
