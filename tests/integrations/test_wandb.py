"""A report in a run of Weights & Biases: what is called, and, by `make test-integrations`, a real offline run."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from assay.errors import ConfigError, MissingDependencyError, StateError
from assay.integrations import log_to_wandb
from assay.report import Report
from integrations import tracked


class Artifact:
    """As `wandb.Artifact`; keeps what files held."""

    def __init__(self, name, type, description=None):
        assert all(each.isalnum() or each in "-_." for each in name), name
        self.name, self.type, self.files = name, type, {}

    def add_file(self, path):
        self.files[Path(path).name] = Path(path).read_text("utf-8")


class Run:
    """As what `wandb.init` gives."""

    id = "r1"

    def __init__(self) -> None:
        self.logged, self.artifacts = [], []

    def log(self, data, step=None):
        self.logged.append((data, step))

    def log_artifact(self, artifact):
        self.artifacts.append(artifact)


@pytest.fixture
def recorder(monkeypatch):
    module = ModuleType("wandb")
    module.run, module.Artifact = None, Artifact
    module.Table = lambda columns, data, allow_mixed_types: SimpleNamespace(columns=columns, data=data)
    module.Html = lambda data, inject: data
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


def test_what_is_logged(recorder):
    run = Run()
    log_to_wandb(tracked.report(), run, step=2, prefix="val/")
    ((data, step),) = run.logged
    assert (step, data["val/accuracy"], data["val/accuracy_upper"], data["val/accuracy[night]"]) == (
        2,
        0.9375,
        0.96,
        0.25,
    )
    assert data["val/per class"].data == [["cat", 0.75, 4], ["dog", None, 0]]
    assert data["val/report"].startswith("<!doctype html>")
    (artifact,) = run.artifacts
    assert (artifact.name, artifact.type) == ("report-r1-val", "report")
    assert Report.from_json(artifact.files["report.json"]) == tracked.report()
    assert artifact.files["report.html"] == data["val/report"]


def test_the_run_that_is_under_way(recorder):
    with pytest.raises(StateError, match=r"wandb: got no run that is under way, expected one. Call wandb.init"):
        log_to_wandb(tracked.report())
    recorder.run = Run()
    log_to_wandb(tracked.report())
    assert recorder.run.artifacts[0].name == "report-r1"


def test_bad_arguments_and_a_host_that_is_missing(recorder, monkeypatch):
    with pytest.raises(ConfigError, match="report: got dict"):
        log_to_wandb({}, Run())
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingDependencyError, match=r'wandb: got no such package.*"assay\[wandb\]"'):
        log_to_wandb(tracked.report(), Run())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(
    importlib.util.find_spec("wandb") is None, reason="make test-integrations installs Weights & Biases"
)
def test_an_offline_run(tmp_path, monkeypatch):
    import wandb

    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=tmp_path, project="pets")
    log_to_wandb(tracked.report(), step=1, prefix="val/")
    run.log({"epoch": 2}, step=2)  # a step is summed up when the next one begins
    found = dict(run.summary)
    run.finish()
    assert found["val/accuracy"] == 0.9375
    assert found["val/accuracy_lower"] == 0.9
    files = [path.name for path in tmp_path.rglob("*") if path.is_file()]
    assert any(name.endswith(".wandb") for name in files)
    assert any(name.endswith(".html") for name in files)
    assert any(name.endswith(".table.json") for name in files)
