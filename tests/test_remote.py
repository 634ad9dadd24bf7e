"""Reports, meters and checkpoints at URLs: whole or not there, and one line for whatever a store raises."""

import functools
import http.server
import os
import sys
import threading

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from typer.testing import CliRunner

from assay import Accuracy, Mean, Meter, evaluate
from assay._atomic import files_in, local_copy, location, prepare_folder, write_text, write_whole
from assay._remote import RemotePath
from assay.cli import app
from assay.errors import ConfigError, MissingDependencyError, StateError
from assay.evaluation import Variant, compare_variants
from assay.report import Report, Section, Value, history
from assay.scoring import Partial, count, score
from assay.wrappers import Tracker

fsspec = pytest.importorskip("fsspec")
from fsspec.implementations.dirfs import DirFileSystem  # noqa: E402 - as the package is optional
from fsspec.implementations.memory import MemoryFileSystem  # noqa: E402

STORE = {"fails": None, "root": ""}


class ShelfFileSystem(DirFileSystem):
    """A folder of this machine at ``shelf://``, which can be made to refuse."""

    protocol = "shelf"
    cachable = False

    def __init__(self, **_):
        super().__init__(STORE["root"], fsspec.filesystem("file"))

    @classmethod
    def _strip_protocol(cls, path):
        return path.removeprefix("shelf://").strip("/")

    def put_file(self, source, target, **options):
        if STORE["fails"] is None:
            return super().put_file(source, target, **options)
        with open(source, "rb") as whole, self.open(target, "wb") as part:
            part.write(whole.read()[:100])
        raise STORE["fails"]


@pytest.fixture
def shelf(tmp_path):
    fsspec.register_implementation("shelf", ShelfFileSystem, clobber=True)
    STORE.update(fails=None, root=str(tmp_path / "shelf"))
    os.makedirs(STORE["root"])
    return tmp_path / "shelf"


@pytest.fixture
def memory():
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    return "memory://runs"


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """Where files are written before they are whole."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def report(value=0.9, title="digits"):
    return Report(title, [Section("test", [Value("accuracy", value, count=450)])])


def test_a_report_at_a_url_is_what_was_saved(memory):
    saved = report()
    path = saved.save(f"{memory}/one/report.json")
    assert str(path) == f"{memory}/one/report.json"
    assert Report.load(path) == Report.load(str(path)) == Report.load(f"{memory}/one") == saved
    page = saved.to_html(f"{memory}/one/report.html")
    assert page.read_text().startswith("<!doctype html>")
    assert files_in(location("folder", memory), "*.json", recursive=True) == [path]


def test_file_urls_are_paths_of_this_machine(tmp_path):
    path = report().save(f"file://{tmp_path}/report.json")
    assert path == tmp_path / "report.json"
    assert Report.load(f"file://{path}") == Report.load(path)


def test_a_meter_goes_through_a_url_to_the_bit(memory):
    meter = Meter(loss=Mean())
    meter.update(torch.tensor([1.0, 1e-30, 2.5]))
    again = Meter.from_file(meter.to_file(f"{memory}/loss.safetensors"))
    assert torch.equal(again.compute()["loss"], meter.compute()["loss"])
    RemotePath(f"{memory}/loss.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="no such file"):
        Meter.from_file(f"{memory}/loss.safetensors")
    tracker = Tracker()
    tracker.record({"loss": 1.0})
    assert Tracker.from_file(tracker.to_file(f"{memory}/tracker.json")) == tracker


def test_a_partial_goes_through_a_url(memory):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"p": [0, 1, 1], "y": [0, 1, 0]})
    partial = count(table, "accuracy:num_classes=2", "table", preds="p", target="y")
    again = Partial.from_file(partial.to_file(f"{memory}/part-1.safetensors"))
    assert again.report().sections == partial.report().sections


def test_parts_at_urls_are_merged_by_a_pattern(memory, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    pa = pytest.importorskip("pyarrow")
    pq.write_table(pa.table({"p": [0, 1, 1], "y": [0, 1, 0]}), tmp_path / "t.parquet", row_group_size=1)
    scored = ["score", str(tmp_path / "t.parquet"), "--preds", "p", "--target", "y", "-m", "accuracy:num_classes=2"]
    for part in ("1/2", "2/2"):
        assert CliRunner().invoke(app, [*scored, "--part", part, "--out", f"{memory}/parts"]).exit_code == 0
    merged = ["merge", f"{memory}/parts/*.safetensors", "--out", f"{memory}/merged"]
    assert CliRunner().invoke(app, merged).exit_code == 0
    assert Report.load(f"{memory}/merged").sections[0].values[0].count == 3
    with pytest.raises(ConfigError, match="no file that matches"):
        CliRunner().invoke(app, ["merge", f"{memory}/other/*.safetensors"], catch_exceptions=False)


def test_a_pattern_whose_store_fails_is_one_error(memory, monkeypatch):
    pytest.importorskip("pyarrow")

    def glob(*_, **__):
        raise TimeoutError("the store does not answer")

    monkeypatch.setattr(MemoryFileSystem, "glob", glob)
    with pytest.raises(StateError, match=r"runs/\*\.parquet: got what cannot be read .*does not answer"):
        score(f"{memory}/*.parquet", "accuracy", preds="p", target="y")


NET = nn.Linear(4, 3)
DATA = TensorDataset(torch.randn(60, 4), torch.randint(3, (60,)))


def run(net, folder, **more):
    options = {"device": "cpu", "checkpoint_every": 0.0, "resume": folder, "run_id": "one", **more}
    return evaluate(net, DataLoader(DATA, batch_size=7), {"acc": Accuracy(num_classes=3)}, **options)


@pytest.mark.parametrize("store", ["memory", "shelf"])
def test_an_evaluation_resumes_from_checkpoints_at_a_url(request, monkeypatch, store):
    request.getfixturevalue(store)
    folder, written = f"{store}://checkpoints/run", []

    def ends(path, fill):
        if len(written) == 4:
            raise KeyboardInterrupt
        written.append(write_whole(path, fill))

    monkeypatch.setattr("assay.evaluation.resume.checkpoint.write_whole", ends)
    monkeypatch.setattr("assay.evaluation.resume.checkpoint.MOST_OF_THE_TIME", 1e9)
    with pytest.raises(KeyboardInterrupt):
        run(NET, folder)
    monkeypatch.undo()
    assert files_in(location("folder", folder), "*") == written[-1:]
    resumed = run(NET, folder)
    assert resumed.sections[0].values == run(NET, None, run_id=None).sections[0].values
    rows = dict(next(table for table in resumed.sections[0].tables if table.name == "Run").rows)
    assert 0 < int(rows["samples from checkpoints"]) < 60


def test_a_damaged_checkpoint_at_a_url_is_a_clear_error(memory):
    run(NET, f"{memory}/checkpoints")
    (file,) = files_in(location("folder", f"{memory}/checkpoints"), "*")
    store, path = fsspec.core.url_to_fs(str(file))
    store.pipe_file(path, file.read_bytes()[:-9])
    with pytest.raises(StateError, match=r"memory://runs/checkpoints/rank-0.safetensors: got no whole checkpoint"):
        run(NET, f"{memory}/checkpoints")


def test_variants_have_folders_below_a_url(memory):
    variants = {"a": Variant(NET), "b": Variant(nn.Linear(4, 3))}
    found = compare_variants(variants, DATA, Accuracy(num_classes=3), device="cpu", resume=f"{memory}/checkpoints")
    written = {str(path) for path in found.save(f"{memory}/found")}
    assert {f"{memory}/found/a/report.json", f"{memory}/found/comparison.json"} < written
    assert location("x", f"{memory}/checkpoints/a/rank-0.safetensors").exists()


def test_histories_find_reports_below_urls_and_by_patterns(memory):
    for k in range(3):
        report(0.8 + k / 50).save(f"{memory}/run-{k}/report.json")
    write_text(f"{memory}/run-0/other.json", "{}")
    expected = ["run-0", "run-1", "run-2"]
    assert [each.name for each in history(memory).runs] == expected
    assert [each.name for each in history(f"{memory}/*/report.json").runs] == expected
    with pytest.raises(ConfigError, match="no file that matches"):
        history(f"{memory}/*/nothing.json")


def test_the_command_line_reads_and_writes_urls(memory, tmp_path):
    a, b = (str(report(value).save(f"{memory}/{value}/report.json")) for value in (0.9, 0.91))
    out = f"{memory}/comparison.json"
    found = CliRunner().invoke(app, ["compare", a, b, "--out", out, "--html", out.replace("json", "html")])
    assert (found.exit_code, found.stderr.split()) == (0, [out.replace("json", "html"), out])
    assert CliRunner().invoke(app, ["gate", a, "--point", "--max-drop", "accuracy=0.5", "--baseline", b]).exit_code == 0
    assert CliRunner().invoke(app, ["history", a, b]).exit_code == 0
    config = tmp_path / "gate.toml"
    config.write_text(f'report = "{a}"\npoint = true\n[min]\naccuracy = 0.5\n')
    assert CliRunner().invoke(app, ["gate", "--config", str(config)]).exit_code == 0


def test_a_measurement_is_written_below_a_url(memory, tmp_path):
    pytest.importorskip("pyarrow")
    table = tmp_path / "preds.csv"
    table.write_text("p,y\n0,0\n1,1\n1,0\n")
    scored = ["score", str(table), "--preds", "p", "--target", "y", "-m", "accuracy:num_classes=2"]
    assert CliRunner().invoke(app, [*scored, "--out", f"{memory}/scored"]).exit_code == 0
    assert Report.load(f"{memory}/scored").sections[0].values[0].value == 2 / 3
    parts = [
        [*scored, "--part", "1/1", "--out", f"{memory}/parts"],
        ["merge", f"{memory}/parts/part-1-of-1.safetensors"],
    ]
    assert [CliRunner().invoke(app, part).exit_code for part in parts] == [0, 0]


@pytest.mark.parametrize("ending", ["csv", "npz"])
def test_data_are_read_from_a_url(memory, tmp_path, monkeypatch, ending):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    arrays = {"p": np.array([0, 1, 1, 0]), "y": np.array([0, 1, 0, 0])}
    np.savez(tmp_path / "held.npz", **arrays)
    (tmp_path / "held.csv").write_text("p,y\n0,0\n1,1\n1,0\n0,0\n")
    url = f"{memory}/held.{ending}"
    write_whole(url, lambda part: part.write_bytes((tmp_path / f"held.{ending}").read_bytes()))
    given = [
        "evaluate",
        "identity",
        "--inputs",
        "p",
        "--target",
        "y",
        "-m",
        "accuracy:num_classes=2",
        "--device",
        "cpu",
    ]
    run = CliRunner().invoke(
        app, [*given, "--data", url, "--out", "run", "--resume", "checkpoints", "--num-workers", "1"]
    )
    assert run.exit_code == 0, run.output
    found = Report.load("run")
    assert found.sections[0].values[0].value == 0.75
    assert f"Data: {url}." in found.notes


@pytest.mark.parametrize(
    ("url", "part"), [("memory://runs/images", "a file that ends in"), ("memory://no.csv", "no such")]
)
def test_data_that_are_not_at_a_url_are_one_line(memory, url, part):
    run = CliRunner().invoke(app, ["evaluate", "identity", "--data", url, "-m", "accuracy"])
    assert part in str(run.exception)


@pytest.mark.parametrize("error", [OSError("connection lost"), PermissionError("Forbidden"), ValueError("odd")])
def test_a_store_that_fails_loses_nothing(shelf, scratch, error):
    path = report(0.9).save("shelf://run/report.json")
    before = (shelf / "run" / "report.json").read_bytes()
    STORE["fails"] = error
    with pytest.raises(OSError, match="shelf://run/report") as raised:
        report(0.95).save(path)
    assert "\n" not in str(raised.value)
    assert str(error) in str(raised.value)
    assert isinstance(raised.value, PermissionError) == isinstance(error, PermissionError)
    assert [each.name for each in (shelf / "run").iterdir()] == ["report.json"]
    assert (shelf / "run" / "report.json").read_bytes() == before
    (left,) = scratch.rglob("report.json")
    assert str(left) in str(raised.value)
    assert Report.load(left).sections[0].values[0].value == 0.95


def test_what_is_uploaded_leaves_nothing_on_this_machine(shelf, scratch):
    report().save("shelf://run/report.json")
    with local_copy("shelf://run/report.json") as copy:
        assert Report.load(copy) == Report.load("shelf://run")
    with pytest.raises(KeyboardInterrupt):
        write_whole("shelf://run/x", _interrupted)
    assert list(scratch.iterdir()) == []
    assert [each.name for each in (shelf / "run").iterdir()] == ["report.json"]


def _interrupted(_):
    raise KeyboardInterrupt


def test_what_cannot_be_opened_is_one_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(ConfigError, match=r'no package s3fs.*pip install "assay\[remote\]" s3fs'):
        Report.load("s3://bucket/report.json")
    with pytest.raises(ConfigError, match="a URL that fsspec can open"):
        Report.load("nowhere://bucket/report.json")
    with pytest.raises(ConfigError, match="read only"):
        prepare_folder("--out", RemotePath("https://host/run"))
    with pytest.raises(ConfigError, match="two slashes"):
        Report.load("s3:/bucket/report.json")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"assay\[remote\]"):
        Report.load("s3://bucket/report.json")


def test_messages_show_no_password():
    with pytest.raises(OSError, match=r"ftp://me:\*\*\*@127.0.0.1") as raised:
        Report.load("ftp://me:secret@127.0.0.1:9/report.json")
    assert "secret" not in str(raised.value)


@pytest.fixture
def server(tmp_path):
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_reports_and_meters_are_read_from_a_web_server(server, tmp_path):
    pytest.importorskip("aiohttp")
    saved = report()
    saved.save(tmp_path / "report.json")
    meter = Meter(loss=Mean())
    meter.update(torch.tensor([1.0, 2.0]))
    meter.to_file(tmp_path / "loss.safetensors")
    assert Report.load(f"{server}/report.json") == saved
    assert Meter.from_file(f"{server}/loss.safetensors").compute()["loss"] == 1.5
    with pytest.raises(FileNotFoundError, match="no such file"):
        Report.load(f"{server}/nothing.json")


def test_a_file_in_the_place_of_a_folder_says_so(tmp_path):
    (tmp_path / "run").write_text("")
    with pytest.raises(ConfigError, match=r"--out: got .*run, which is no folder, expected a folder. Name another one"):
        prepare_folder("--out", tmp_path / "run")
