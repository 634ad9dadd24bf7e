"""A table counted by Ray: by tasks, of which one is killed, and as an aggregation of a dataset."""

from __future__ import annotations

import importlib.util
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import assay
from assay.errors import ConfigError, MissingDependencyError
from assay.integrations import ray_aggregate, score_on_ray
from assay.metrics import Accuracy
from assay.scoring import BadRowsError
from killing import BATCHES, KillingMean

OPTIONS = {"preds": "p", "ids": "id", "slices": ["g"], "n_resamples": 25, "diagnostics": False}
ACCURACY = Accuracy(num_classes=2)


def contents(report):
    section = report.sections[0]
    return section.values, section.slices, section.samples, section.resampling, section.tables[0]


def test_without_ids_blocks_cannot_be_told_apart():
    with pytest.raises(ConfigError, match="ids: got none"):
        ray_aggregate(ACCURACY, preds="p", target="y")


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingDependencyError, match=r"assay\[ray\]"):
        score_on_ray("t.parquet", ACCURACY, preds="p", target="y")


@pytest.fixture(scope="module")
def cluster():
    if importlib.util.find_spec("ray") is None:
        pytest.skip("ray is not installed")
    import ray

    paths = {"PYTHONPATH": os.pathsep.join(sys.path)}  # of `killing`
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, runtime_env={"env_vars": paths})
    yield ray
    ray.shutdown()


@pytest.fixture
def path(tmp_path):
    """A table of 20 fragments."""
    random = np.random.default_rng(5)
    rows = {"p": random.integers(0, 2, 400), "y": random.integers(0, 2, 400), "g": ["a", "b"] * 200}
    pq.write_table(pa.table({**rows, "id": range(400)}), tmp_path / "t.parquet", row_group_size=20)
    return tmp_path / "t.parquet"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_killed_task_counts_once(cluster, path, tmp_path):
    (tmp_path / "noted").mkdir()
    metric = KillingMean(folder=str(tmp_path / "noted"), spared=os.getpid())
    report = score_on_ray(path, metric, **OPTIONS)
    noted = len(os.listdir(tmp_path / "noted"))
    assert BATCHES < noted != 20, "a process was killed, and what it had counted was counted again"
    assert contents(report) == contents(assay.score(path, metric, **OPTIONS))
    assert report.notes[0] == "Every row once: 400 expected, 400 counted, 0 duplicated, 0 missed."
    assert ("fragments (files or row groups)", "20") in report.sections[0].tables[1].rows


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_dataset_has_the_bits_of_its_file(cluster, path):
    options = {**OPTIONS, "target": "y"}
    dataset = cluster.data.read_parquet(str(path))
    expected = assay.score(path, ACCURACY, **options)
    assert contents(score_on_ray(dataset, ACCURACY, **options)) == contents(expected)
    with pytest.raises(BadRowsError, match=r"an earlier row in id|rows whose id in id other rows have"):
        score_on_ray(dataset.union(dataset.limit(30)), ACCURACY, **options)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_errors_of_tasks_are_those_of_assay(cluster, path):
    with pytest.raises(BadRowsError, match="a label outside"):
        score_on_ray(path, Accuracy(num_classes=2), preds="id", target="y")
