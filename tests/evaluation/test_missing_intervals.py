"""A report says why a value has no interval: one line a reason."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
import torch

from assay import AUROC, Accuracy, MeanSquaredError, Meter, PearsonCorrCoef, R2Score, evaluate, score
from assay.evaluation.observe import bootstrap_groups
from assay.evaluation.results.missing_intervals import MissingInterval, missing_interval_notes
from assay.meter.resampling.intervals import intervals_or_reasons
from assay.meter.resampling.replicates import replicate_interval
from assay.metrics import (
    MatthewsCorrCoef,
    Max,
    MaximumAbsoluteError,
    RetrievalMAP,
    RetrievalMRR,
    RetrievalPrecision,
    RetrievalRecall,
    RetrievalRecallAtFixedPrecision,
    StringExactMatch,
    Sum,
)
from assay.metrics.base import NO_ESTIMATE

ALIKE = "all samples contribute the same, which says nothing of others"


def lines(report):
    return [note for note in report.notes if note.startswith("No interval for")]


def searches(queries, metrics, **more):
    rng = np.random.default_rng(2)
    rows = np.arange(queries * 8)
    columns = {"s": rng.random(len(rows)), "y": (rng.random(len(rows)) < 0.3) | (rows % 8 == 0), "q": rows // 8}
    table = pa.table(columns | {"half": np.where(rows < len(rows) // 2, "a", "b")})
    return score(table, metrics, preds="s", target="y", columns={"indexes": "q"}, **more)


def test_a_ranking_of_few_queries_says_so():
    metrics = {"MRR": RetrievalMRR(), "MAP": RetrievalMAP()}
    assert lines(searches(11, metrics)) == ["No interval for MRR, MAP: fewer than 12 queries."]
    assert lines(searches(12, metrics)) == []
    in_slices = "No interval for MRR, MAP in slices half = a, half = b: fewer than 12 queries."
    assert lines(searches(12, metrics, slices=["half"])) == [in_slices]
    everywhere = "No interval for MRR, MAP, in all samples and in slices half = a, half = b: fewer than 12 queries."
    assert lines(searches(8, metrics, slices=["half"])) == [everywhere]


def test_recall_at_a_precision_of_few_queries_says_so():
    metric = {"r": RetrievalRecallAtFixedPrecision(max_k=3, min_precision=0.2)}
    few = searches(11, metric)
    assert lines(few)[0] == "No interval for r recall: fewer than 12 queries."
    assert lines(few)[1].startswith("No interval for r top_k: with indexes= only")
    assert [line.partition(":")[0] for line in lines(searches(40, metric))] == ["No interval for r top_k"]


def test_queries_of_one_value_and_other_aggregations_say_so():
    every = Meter(
        mrr=RetrievalMRR(), recall=RetrievalRecallAtFixedPrecision(max_k=2), weakest=RetrievalMRR(aggregation="min")
    )
    numbers = torch.arange(40).repeat_interleave(2)
    every.update(torch.tensor([0.9, 0.1]).repeat(40), torch.tensor([1, 0]).repeat(40), indexes=numbers)
    assert intervals_or_reasons(every) == {
        "mrr": "all queries have the same value",
        "recall recall": "the replicates of the bootstrap are equal",
    }
    assert RetrievalMRR(aggregation="min").without_estimate == NO_ESTIMATE
    assert RetrievalMRR(by_row=True, aggregation="median").without_estimate.startswith("the median of queries")
    assert RetrievalMRR(by_row=True).without_estimate == ""
    both = (RetrievalPrecision() + RetrievalRecall()) / 2
    assert both.without_estimate == RetrievalPrecision().without_estimate != ""


def test_samples_that_are_all_alike_say_so_with_at_most_three_slices(tmp_path):
    table = pa.table({"p": ["a"] * 60, "y": ["b"] * 60, "lang": ["de", "fr", "it", "es", "pt"] * 12})
    report = score(table, {"EM": StringExactMatch()}, preds="p", target="y", slices=["lang"])
    line = f"No interval for EM, in all samples and in slices lang = de, lang = es, lang = fr and 2 more: {ALIKE}."
    assert lines(report) == [line]
    assert line in report.to_markdown()
    report.to_html(tmp_path / "report.html")
    assert line in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert line in " ".join(str(report).split())


def test_totals_say_so():
    table = pa.table({"p": np.linspace(0, 1, 50)})
    assert lines(score(table, {"sum": Sum(), "max": Max()}, preds="p")) == [f"No interval for sum, max: {NO_ESTIMATE}."]


def binary(count, slices, **more):
    rng = np.random.default_rng(1)
    table = pa.table({"p": rng.random(count), "y": rng.integers(0, 2, count), "part": np.arange(count) % slices})
    metrics = {"mcc": MatthewsCorrCoef(ignore_index=-1), "acc": Accuracy()}
    return score(table, metrics, preds="p", target="y", slices=["part"], **more)


def test_slices_of_too_few_samples_say_so():
    expected = "No interval for mcc in slices part = 0, part = 1, part = 2 and 7 more: too few samples: fewer than 10 "
    assert [line.startswith(expected) for line in lines(binary(60, 10))] == [True]


def test_nothing_is_said_where_all_have_intervals_or_none_were_asked_for():
    assert lines(binary(600, 2)) == []
    assert lines(binary(60, 10, confidence_level=None)) == []


def test_slices_whose_groups_take_too_much_say_so(monkeypatch):
    monkeypatch.setattr(bootstrap_groups, "MOST_BYTES", 1000)
    expected = "No interval for mcc in slices part = 0, part = 1: the groups of so many slices take too much memory."
    assert lines(binary(600, 2)) == [expected]


def test_a_ranking_of_one_positive_has_neither_a_formula_nor_replicates_that_differ():
    scores, labels = torch.linspace(0, 1, 40), torch.arange(40) // 39
    meter = Meter(auroc=AUROC())
    meter.update(scores, labels)
    assert intervals_or_reasons(meter) == {"auroc": "fewer than two positives or negatives"}
    table = pa.table({"p": scores.numpy(), "y": labels.numpy()})
    expected = "No interval for auroc: the replicates of the bootstrap are equal."
    assert lines(score(table, {"auroc": AUROC()}, preds="p", target="y")) == [expected]


@pytest.mark.parametrize("count", [2, 5, 11, 40])
def test_each_defined_value_without_an_interval_is_in_a_line(count):
    rng = np.random.default_rng(count)
    data = torch.utils.data.TensorDataset(*(torch.from_numpy(rng.random(count)).float() for _ in range(2)))
    metrics = {"r2": R2Score(), "mse": MeanSquaredError(), "pearson": PearsonCorrCoef(), "max": MaximumAbsoluteError()}
    report = evaluate(lambda x: x, data, metrics, device="cpu")
    without = {each.name for each in report.sections[0].values if each.lower is None and not math.isnan(each.value)}
    said = {name for line in lines(report) for name in line[len("No interval for ") :].partition(":")[0].split(", ")}
    assert said == without
    assert "max" in said


@pytest.mark.parametrize(
    ("replicates", "reason"),
    [
        ([0.5] * 100, "are equal"),
        ([math.nan] * 60 + [0.4, 0.6] * 20, "60 of 100 replicates"),
        ([0.4, 0.6] * 10, "fewer than 25"),
        ([0.8, 0.9] * 200, "are biased"),
        ([math.inf, -math.inf] * 50, "are infinite"),
    ],
)
def test_replicates_that_give_no_interval_say_why(replicates, reason):
    found = replicate_interval(0.5, replicates, 0.95, 32)
    assert isinstance(found, str)
    assert reason in found


def test_a_line_names_three_values_and_three_slices_at_most():
    few = [MissingInterval(name, "few", part) for part in ("", "s", "t", "u", "v", "w") for name in "abcde"]
    assert missing_interval_notes(few) == [
        "No interval for a, b, c and 2 more, in all samples and in slices s, t, u and 2 more: few."
    ]
    apart = [MissingInterval("a", "few"), MissingInterval("b", "few", "s")]
    assert missing_interval_notes(apart) == ["No interval for a; b in slice s: few."]
    assert missing_interval_notes([]) == []


def test_a_metric_that_was_not_resampled_does_not_name_the_bootstrap():
    """MRR has few queries, and the correlation few samples: each says its own."""
    rows = np.arange(6)
    table = pa.table({"s": rows / 7, "y": rows % 2 == 0, "q": rows // 2})
    metrics = {"MRR": RetrievalMRR(), "mcc": MatthewsCorrCoef()}
    found = lines(score(table, metrics, preds="s", target="y", columns={"indexes": "q"}))
    assert found[0] == "No interval for MRR: fewer than 12 queries."
    assert found[1].startswith("No interval for mcc: too few samples: fewer than 10 groups")


def test_pixels_of_few_images_say_that_there_are_few():
    """A row has several samples, so Wilson's interval is not asked for; the images are too few to resample."""
    target = torch.arange(8 * 64).view(8, 8, 8) % 2
    preds = ((target + (torch.arange(8 * 64).view(8, 8, 8) % 3 == 0)) % 2).float()
    data = torch.utils.data.TensorDataset(preds, target)
    (found,) = lines(evaluate(lambda x: x, data, {"acc": Accuracy()}, device="cpu", keep_samples=False))
    assert found.startswith("No interval for acc: too few samples: fewer than 10 groups of the bootstrap")
