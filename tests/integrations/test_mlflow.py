"""A report in an MLflow run: what is called, and, by `make test-integrations`, a real local store."""

from __future__ import annotations

import importlib.util
import json
import math
import sys
from pathlib import Path
from types import ModuleType

import pytest

from assay.errors import ConfigError, MissingDependencyError
from assay.integrations import log_to_mlflow
from assay.report import Report
from integrations import tracked


class Recorder(ModuleType):
    """The functions of `mlflow/tracking/fluent.py` that are used, with its rule for names."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.metrics, self.files = {}, {}

    def log_metrics(self, metrics, step=None, run_id=None):
        for name, value in metrics.items():
            assert all(each.isalnum() or each in "_-. :/" for each in name), name
            self.metrics[name, step, run_id] = value

    def log_table(self, data, artifact_file, run_id=None):
        self.files[artifact_file] = data

    def log_text(self, text, artifact_file, run_id=None):
        self.files[artifact_file] = text


def test_what_is_logged(monkeypatch):
    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    log_to_mlflow(tracked.report(), step=2, prefix="val/", run_id="r1")
    assert recorder.metrics["val/accuracy", 2, "r1"] == 0.9375
    assert recorder.metrics["val/accuracy_night_", 2, "r1"] == 0.25
    assert recorder.metrics["val/F1 _macro_", 2, "r1"] == 0.5
    folder = "assay/val/step 2"
    assert recorder.files[f"{folder}/per class.json"] == {
        "class": ["cat", "dog"],
        "recall": [0.75, None],
        "count": [4, 0],
    }
    assert recorder.files[f"{folder}/report.html"].startswith("<!doctype html>")
    assert Report.from_json(recorder.files[f"{folder}/report.json"]) == tracked.report()


def test_names_that_become_the_same_stay_apart(monkeypatch):
    from assay.report import Section, Value

    recorder = Recorder()
    monkeypatch.setitem(sys.modules, "mlflow", recorder)
    log_to_mlflow(Report("r", [Section("s", [Value("a(b", 1.0), Value("a[b", 2.0)])]))
    assert {name: value for (name, _, _), value in recorder.metrics.items()} == {"a_b": 1.0, "a_b 2": 2.0}
    assert "assay/report.html" in recorder.files


def test_bad_arguments_and_a_host_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", Recorder())
    with pytest.raises(ConfigError, match="report: got str"):
        log_to_mlflow("report.json")
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingDependencyError, match=r'mlflow: got no such package.*"assay\[mlflow\]"'):
        log_to_mlflow(tracked.report())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="make test-integrations installs MLflow")
def test_a_local_store(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri(tmp_path.as_uri())
    mlflow.set_experiment("pets")
    with mlflow.start_run() as run:
        log_to_mlflow(tracked.report(), step=2, prefix="val/")
    log_to_mlflow(tracked.reports(), run_id=run.info.run_id)
    client = mlflow.MlflowClient()
    found = client.get_run(run.info.run_id).data.metrics
    assert found["val/accuracy"] == found["held out/accuracy"] == 0.9375
    assert found["val/accuracy_lower"] == 0.9
    assert math.isnan(found["val/undefined"])
    assert client.get_metric_history(run.info.run_id, "val/accuracy")[0].step == 2
    page = client.download_artifacts(run.info.run_id, "assay/val/step 2/report.html", tmp_path)
    assert Path(page).read_text("utf-8").startswith("<!doctype html>")
    stored = client.download_artifacts(run.info.run_id, "assay/report.json", tmp_path)
    assert Report.load(stored) == tracked.reports()
    table = client.download_artifacts(run.info.run_id, "assay/val/step 2/per class.json", tmp_path)
    assert json.loads(Path(table).read_text())["columns"] == ["class", "recall", "count"]
