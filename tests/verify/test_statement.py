"""A statement says what the report says, is about the right bytes, and proves single samples."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from typer.testing import CliRunner

from assay import Accuracy, F1Score, evaluate, score
from assay.cli import app
from assay.errors import ConfigError, StateError
from assay.report import Samples, Value
from assay.verify import Verification, prove_sample, root_of_samples, statement_of, verify_file
from assay.verify.merkle import leaf_hash, merkle_path, merkle_root, node_hash, root_of_path
from evaluation.exact_products import classifier, sixteenths

EVALUATOR = "https://example.org/team"
RFC6962 = [bytes.fromhex(each) for each in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657")]
ROOT_OF_SEVEN = "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"
"""Entries and root of the tests of google/certificate-transparency (cpp/merkletree/merkle_tree_test.cc)."""


@pytest.fixture
def measured(tmp_path):
    data = torch.utils.data.TensorDataset(sixteenths(30, 4), torch.randint(3, (30,)))
    metrics = {"acc": Accuracy(num_classes=3), "f1": F1Score(num_classes=3, average="macro")}
    report = evaluate(classifier(4, 3), data, metrics, device="cpu")
    return report, report.save(tmp_path / "report.json")


def verified(path):
    report, checks = verify_file(path)
    return report, Verification.of("", checks)


def test_the_root_is_that_of_certificate_transparency():
    assert merkle_root(RFC6962).hex() == ROOT_OF_SEVEN
    assert merkle_root([]) == hashlib.sha256(b"").digest()


def recursive_root(entries):
    """Section 2.1 of RFC 6962 as it is written: split at the largest power of two below the number of entries."""
    if len(entries) == 1:
        return leaf_hash(entries[0])
    split = 1 << (len(entries) - 1).bit_length() - 1
    return node_hash(recursive_root(entries[:split]), recursive_root(entries[split:]))


def test_every_entry_of_every_size_is_proved_and_no_other():
    for count in range(1, 40):
        entries = [f"{count} {k}".encode() for k in range(count)]
        root = merkle_root(entries)
        assert root == recursive_root(entries)
        for k, entry in enumerate(entries):
            path = merkle_path(entries, k)
            assert root_of_path(entry, k, count, path) == root
            assert root_of_path(b"another", k, count, path) != root
            assert root_of_path(entry, k, count, [*path, root]) is None
            if path:
                assert root_of_path(entry, k, count, path[:-1]) is None
                assert root_of_path(entry, (k + 1) % count, count, path) != root


def test_a_statement_has_the_digests_and_values_of_the_report(measured):
    report, path = measured
    read, found = verified(path)
    statement = statement_of(read, path, found, EVALUATOR)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [
        {"name": "report.json", "digest": {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}}
    ]
    predicate = statement["predicate"]
    assert {"evaluator", "evaluatedAt", "suite", "claims", "sampleSize", "model", "dataset"} <= predicate.keys()
    assert {"assuranceLevel", "subjectProfile", "evidence", "harness"} <= predicate.keys()
    assert predicate["sampleSize"] == 30
    assert datetime.fromisoformat(predicate["evaluatedAt"]).tzinfo is not None
    for value in report.sections[0].values:
        claims = [each for each in predicate["claims"] if each["metric"] == value.signature]
        assert [each["comparator"] for each in claims] == [">=", "<="]
        assert all(Decimal(each["threshold"]) == Decimal(repr(value.value)) and each["passed"] for each in claims)
    assert predicate["model"]["digest"] == {"assay-weights-sha256": report.origin.model}
    assert predicate["assuranceLevel"] == "self_attested"
    assert json.loads(json.dumps(statement, allow_nan=False)) == statement


def test_a_threshold_is_a_decimal_string_with_the_digits_of_the_value(measured):
    report, path = measured
    (section,) = report.sections
    tiny = replace(section, values=(Value("loss", 1.25e-7),))
    statement = statement_of(replace(report, sections=(tiny,)), path, Verification("pass", (), ""), EVALUATOR)
    assert [each["threshold"] for each in statement["predicate"]["claims"]] == ["0.000000125"] * 2


def test_a_proof_of_another_sample_or_place_does_not_hold(measured):
    samples = measured[0].sections[0].samples
    root, proof, other = root_of_samples(samples), prove_sample(samples, 3), prove_sample(samples, 4)
    assert proof.holds(root)
    assert not replace(proof, entry=other.entry).holds(root)
    assert not replace(proof, path=other.path).holds(root)
    assert not replace(proof, index=other.index).holds(root)
    assert not replace(proof, path=proof.path[:-1]).holds(root)
    assert not replace(proof, path=(*proof.path, proof.path[0])).holds(root)
    one = Samples.pack(["a"], {"correct": [True]})
    alone = prove_sample(one, "a")
    assert alone.holds(root_of_samples(one))
    assert not any(replace(alone, index=index).holds(root_of_samples(one)) for index in (-1, 1, 5))


def test_each_sample_is_in_the_root(measured):
    report, path = measured
    samples = report.sections[0].samples
    statement = statement_of(report, path, verified(path)[1], EVALUATOR)
    (evidence,) = [each for each in statement["predicate"]["evidence"] if each["name"] == "samples"]
    root = evidence["digest"]["assay-merkle-sha256"]
    assert root == root_of_samples(samples)
    proof = prove_sample(samples, 7)
    entry = json.loads(proof.entry)
    assert (entry["id"], entry["decision"], entry["target"]) == (
        7, int(samples.decision.values[7]), int(samples.target.values[7])
    )  # fmt: skip
    assert proof.holds(root)
    assert not replace(proof, entry=proof.entry.replace(b'"id":7', b'"id":8')).holds(root)
    decisions = samples.decision.values.copy()
    decisions[20] = (decisions[20] + 1) % 3
    changed = replace(samples, decision=type(samples.decision).of(decisions))
    assert not prove_sample(changed, 7).holds(root)
    with pytest.raises(ConfigError, match="one of the 30 samples"):
        prove_sample(samples, 30)


def test_entries_have_the_same_bytes_for_strings_and_numbers_that_are_not_finite():
    samples = Samples.pack(["a", "ü"], {"loss": [float("nan"), float("inf")]}, target=["x", "y"])
    assert prove_sample(samples, "ü").entry == '{"id":"ü","loss":"Infinity","target":"y"}'.encode()


@pytest.fixture
def scored(tmp_path):
    table = pa.table({"p": np.arange(20) % 3, "t": np.arange(20) % 2})
    pq.write_table(table, tmp_path / "predictions.parquet")
    report = score(tmp_path / "predictions.parquet", "accuracy:num_classes=3", preds="p", target="t")
    return report.save(tmp_path / "report.json")


def test_a_report_without_a_model_needs_the_file_of_one(scored, tmp_path):
    read, found = verified(scored)
    with pytest.raises(StateError, match=r"no digest of the model, expected one.*--subject"):
        statement_of(read, scored, found, EVALUATOR)
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"weights")
    statement = statement_of(read, scored, found, EVALUATOR, weights)
    digest = {"sha256": hashlib.sha256(b"weights").hexdigest()}
    assert statement["subject"] == [{"name": "model.safetensors", "digest": digest}]
    assert statement["predicate"]["model"] == {"name": "model.safetensors", "digest": digest}
    data = hashlib.sha256((tmp_path / "predictions.parquet").read_bytes()).hexdigest()
    assert statement["predicate"]["dataset"] == {"name": "predictions.parquet", "digest": {"sha256": data}}


def test_nothing_is_stated_of_what_did_not_pass(measured):
    report, path = measured
    for outcome in ("fail", "not enough evidence"):
        with pytest.raises(StateError, match=f"ends with: {outcome}, expected a pass"):
            statement_of(report, path, Verification(outcome, (), ""), EVALUATOR)
    with pytest.raises(ConfigError, match="evaluator: got 'the team', expected a URI"):
        statement_of(report, path, Verification("pass", (), ""), "the team")
    (section,) = report.sections
    twice = replace(report, sections=(section, replace(section, name="again")))
    with pytest.raises(StateError, match="2 sections, expected one"):
        statement_of(twice, path, Verification("pass", (), ""), EVALUATOR)


def test_the_command_writes_it(scored, tmp_path):
    def invoked(*arguments):
        return CliRunner().invoke(app, ["verify", str(tmp_path), *map(str, arguments)])

    out, weights = tmp_path / "statement.json", tmp_path / "weights.bin"
    weights.write_bytes(b"weights")
    assert "--statement: got no evaluator" in str(invoked("--statement", out).exception)
    missing = invoked("--statement", out, "--evaluator", EVALUATOR, "--subject", tmp_path / "none")
    assert "Check the path" in str(missing.exception)
    assert not out.exists()
    done = invoked("--statement", out, "--evaluator", EVALUATOR, "--subject", weights)
    assert done.exit_code == 0, done.stderr
    assert str(out) in done.stderr.replace("\n", "")
    assert json.loads(out.read_text("utf-8"))["predicate"]["evaluator"] == {"id": EVALUATOR}


def test_a_model_that_was_run_again_is_said_to_be_reproduced(measured):
    report, path = measured
    again = replace(verified(path)[1].checks[0], level="rerun", what="values")
    statement = statement_of(report, path, Verification("pass", (again,), ""), EVALUATOR)
    assert statement["predicate"]["assuranceLevel"] == "reproduced"


def test_data_in_memory_is_known_by_its_targets(measured):
    report, path = measured
    statement = statement_of(report, path, verified(path)[1], EVALUATOR)
    samples = report.sections[0].samples
    expected = root_of_samples(Samples(samples.ids, target=samples.target))
    assert statement["predicate"]["dataset"] == {"name": "targets", "digest": {"assay-merkle-sha256": expected}}
    without = replace(report, sections=(replace(report.sections[0], values=(Value("loss", 1.0),), samples=None),))
    with pytest.raises(StateError, match="no digest of the data, and no targets"):
        statement_of(without, path, Verification("pass", (), ""), EVALUATOR)


def test_a_report_that_is_contradicted_has_the_exit_code_of_that_and_no_statement(scored, tmp_path):
    text = scored.read_text("utf-8").replace('"title": "Score"', '"title": "Another"')
    scored.write_text(text, "utf-8")
    out = tmp_path / "statement.json"
    done = CliRunner().invoke(app, ["verify", str(scored), "--statement", str(out), "--evaluator", EVALUATOR])
    assert done.exit_code == 1
    assert "FAIL" in done.stdout
    assert not out.exists()
