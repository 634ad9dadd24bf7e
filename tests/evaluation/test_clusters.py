"""Clusters in `evaluate` and `score`: intervals, groups of the bootstrap, and what a report keeps."""

import json

import numpy as np
import pyarrow as pa
import pytest
import torch

from assay import Accuracy, evaluate, score
from assay.errors import ConfigError
from assay.metrics import F1Score
from assay.report import compare
from assay.report.inference.clusters import ClusterCodes
from assay.report.inference.measured_value import MeasuredValue
from assay.stats.intervals import mean_interval
from evaluation.stopping import Stops
from ranks import processes

RANDOM = np.random.default_rng(0)
CODES = np.repeat(np.arange(40), 5)
PASSAGES = np.array([f"p{code}" for code in CODES], object)
Y = RANDOM.integers(0, 3, 200)
P = np.where(RANDOM.random(40)[CODES] < 0.6, Y, RANDOM.integers(0, 3, 200))
METRICS = {"acc": Accuracy(num_classes=3), "f1": F1Score(num_classes=3, average="macro")}
DATA = {"p": torch.tensor(P), "target": torch.tensor(Y), "passage": PASSAGES}


def measured(cluster, data=DATA, **options):
    return evaluate(lambda p: p, data, METRICS, inputs="p", cluster=cluster, device="cpu", **options)


def ends(report):
    return [(each.lower, each.upper) for each in report.sections[0].values]


def test_a_part_a_function_an_array_and_a_column_are_the_same_clusters():
    first = measured("passage")
    table = pa.table({"p": P, "y": Y, "passage": PASSAGES})
    others = [
        measured(PASSAGES),
        measured(lambda batch: batch["passage"], batch_size=7),
        score(table, METRICS, preds="p", target="y", cluster="passage"),
        score(table, METRICS, preds="p", target="y", cluster="passage", slices=["passage"]),
    ]
    for other in others:
        assert ends(other) == ends(first)
        found = [each.sections[0].samples.clusters.values.tolist() for each in (first, other)]
        assert found[0] == found[1]
    assert "Intervals are of 40 clusters of passage, not of samples." in first.notes
    assert ends(measured(None))[0] != ends(first)[0]


def test_groups_of_the_bootstrap_have_whole_clusters():
    report = measured("passage")
    resampling = report.sections[0].resampling
    assert resampling.cluster == "passage"
    assert resampling.filled <= 40 < measured(None).sections[0].resampling.filled
    delta = compare(report, measured("passage")).delta("f1")
    assert delta.paired
    assert "clusters" in compare(report, measured(None)).delta("f1").note


def test_one_sample_a_cluster_are_independent_samples_but_for_students_quantile():
    plain, single = measured(None), measured(np.arange(200))
    right = plain.sections[0].samples.column("correct").astype(float)
    (low, high), (least, most) = ends(plain)[0], mean_interval(right)
    assert ends(single)[0] == pytest.approx((min(low, least), max(high, most)), abs=2e-3)


def test_intervals_without_samples_are_of_clusters():
    value = measured("passage", keep_samples=False).sections[0].values[0]
    assert "bootstrap" in value.note
    kept = measured("passage").sections[0]
    codes = ClusterCodes.of(MeasuredValue.of(kept, "acc"))
    error = codes.mean([kept.samples.column("correct").astype(float)]).error
    assert (value.upper - value.lower) / 4 == pytest.approx(error, rel=0.25)


@pytest.mark.parametrize(
    ("cluster", "part"),
    [
        (np.arange(3), "3 clusters"),
        (np.array([None] * 200, object), "samples without one"),
        (np.where(np.arange(200) == 7, np.nan, 1.0), "samples without one"),
        ("other", "no 'other'"),
    ],
)
def test_what_is_no_cluster_of_each_sample_is_refused(cluster, part):
    with pytest.raises(ConfigError, match=part):
        measured(cluster)


def test_an_array_has_no_place_in_a_stream():
    batches = [{"p": torch.tensor(P), "target": torch.tensor(Y)}]
    with pytest.raises(ConfigError, match="a stream"):
        measured(CODES, iter(batches))


def test_columns_that_cannot_be_clusters_are_refused():
    table = pa.table({"p": P, "y": Y, "tags": [["a"]] * 200, "gap": [None, *[1] * 199]})
    for cluster, part in {"tags": "lists", "gap": "samples without one", "absent": "no column"}.items():
        with pytest.raises(ConfigError, match=part):
            score(table, METRICS, preds="p", target="y", cluster=cluster)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_in_a_column_of_numbers_is_no_cluster(dtype):
    column = pa.array(np.where(np.arange(200) == 3, np.nan, np.arange(200) // 20).astype(dtype))
    for clusters in (column, column.dictionary_encode()):
        with pytest.raises(ConfigError, match="samples without one"):
            score(pa.table({"p": P, "y": Y, "c": clusters}), METRICS, preds="p", target="y", cluster="c")
    texts = pa.array([str(each) for each in column.to_pylist()])
    assert score(pa.table({"p": P, "y": Y, "c": texts}), METRICS, preds="p", target="y", cluster="c").sections


def scored():
    """Scores as inputs, so that a model may stop."""
    scores = torch.nn.functional.one_hot(torch.tensor(P), 3).float()
    return torch.utils.data.TensorDataset(scores, torch.tensor(Y))


def bits(report):
    (section,) = report.sections
    clusters = section.samples.clusters.values.tolist()
    return ends(report), [each.replicates and each.replicates.values.tolist() for each in section.values], clusters


def of_scores(model, **options):
    return evaluate(model, scored(), METRICS, cluster=PASSAGES, device="cpu", batch_size=16, **options)


def test_a_run_that_resumes_has_the_same_clusters(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        of_scores(Stops(5), resume=tmp_path, checkpoint_every=0.0)
    rest = Stops(100)
    found = of_scores(rest, resume=tmp_path)
    assert 0 < rest.counters.rows <= 200 - 4 * 16
    assert bits(found) == bits(of_scores(torch.nn.Identity()))


def on_each(rank, size):
    return bits(of_scores(torch.nn.Identity()))


def test_two_processes_have_the_clusters_of_one(tmp_path):
    assert processes(on_each, 2, tmp_path) == [json.loads(json.dumps(bits(of_scores(torch.nn.Identity()))))] * 2
