"""What a report keeps to be made again: counts, digests, signatures and what made it."""

import dataclasses
import hashlib
import json
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import torch

from assay import AUROC, Accuracy, F1Score, evaluate, score
from assay.errors import StateError
from assay.evaluation.results.provenance import MOST_PACKED, _compressed, meter_from, model_digest
from assay.metrics.signature import parse_signature
from assay.report import Report
from assay.report.revision import revision

SOFT = {"preds": lambda output: output.softmax(1)}
METRICS = {"accuracy": Accuracy(num_classes=3), "f1": F1Score(num_classes=3), "auc": AUROC(num_classes=3)}


def _data(order):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(40, 3, generator=generator).softmax(1)
    return torch.utils.data.TensorDataset(scores[order], torch.randint(3, (40,), generator=generator)[order])


def _report(model=None, order=slice(None), **options):
    return evaluate(model or torch.nn.Identity(), _data(order), METRICS, device="cpu", diagnostics=False, **options)


def test_counts_in_a_report_give_its_values_and_do_not_depend_on_the_order():
    report, other = _report(), _report(order=torch.randperm(40), batch_size=7)
    counts = Report.from_json(report.to_json()).sections[0].counts
    values = meter_from(counts, "report").compute()
    assert {name: float(value) for name, value in values.items()} == {
        value.name: value.value for value in report.sections[0].values
    }
    assert counts == other.sections[0].counts
    assert counts.rows == 40
    for value in report.sections[0].values:
        assert parse_signature(value.signature) == METRICS[value.name]


@pytest.mark.parametrize("size", [0, 1, MOST_PACKED, 3 * MOST_PACKED + 5])
def test_counts_are_compressed_piece_by_piece_until_they_take_too_much(size):
    regular, random = bytes(size), np.random.default_rng(0).bytes(size)
    assert zlib.decompress(_compressed(regular)) == regular
    found = _compressed(random)
    assert zlib.decompress(found) == random if size < MOST_PACKED else found == b""


def test_counts_that_were_changed_are_refused():
    counts = _report().sections[0].counts
    for changed in ({"rows": 41}, {"packed": counts.packed[:-8]}, {"packed": ""}, {"sha256": "0" * 64}):
        with pytest.raises(StateError, match=r"[Mm]ake the report again"):
            meter_from(dataclasses.replace(counts, **changed), "report")


def test_a_model_has_a_digest_of_its_weights_where_it_is_small_and_on_the_cpu():
    model = torch.nn.Linear(3, 3)
    first = _report(model, **SOFT).origin
    assert first.model == model_digest(model) != ""
    assert first.call == "evaluate"
    with torch.no_grad():
        model.weight[0, 0] += 1
    assert _report(model, **SOFT).origin.model not in ("", first.model)
    assert model_digest(model, most=8) == model_digest(lambda x: x) == ""
    assert model_digest(torch.nn.Linear(3, 3, device="meta")) == ""


def test_a_table_has_the_digest_of_its_file_and_the_options_of_the_call(tmp_path):
    file = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(pa.table({"p": [0, 1, 1], "y": [0, 1, 0]}), file)
    origin = score(file, "accuracy:num_classes=2", preds="p", target="y", seed=3).origin
    assert origin.data == {"rows.csv": "sha256:" + hashlib.sha256(file.read_bytes()).hexdigest()}
    assert (origin.call, origin.seed) == ("score", 3)
    assert json.loads(origin.options) == {"preds": "p", "seed": 3, "target": "y"}


def test_a_repository_gives_its_commit_and_nothing_else_gives_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert revision() == ("", None)
    (tmp_path / ".git").write_text("gitdir: nowhere", "utf-8")
    assert revision() == ("", None)
    report = _report()
    assert (report.origin.commit, report.origin.dirty) == ("", None)


def test_reports_of_the_schema_before_are_read(tmp_path):
    file = Path(__file__).parents[1] / "report" / "formats" / "report-6.json"
    report = Report.load(file)
    assert report["accuracy"].value == 0.8
    assert (report.origin, report.sections[0].counts, report["f1"].signature) == (None, None, "")
    assert json.loads(report.to_json())["schema"] == "assay.report/7"
    (tmp_path / "report.json").write_text(file.read_text("utf-8").replace("golden", "forged"), "utf-8")
    with pytest.raises(StateError, match="digest"):
        Report.load(tmp_path)
