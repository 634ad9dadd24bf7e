"""Reports are verified: sound ones pass, and each mutation is found by the first level that can see it."""

import copy
import json
import math
import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
import torch
from typer.testing import CliRunner

from assay import AUROC, Accuracy, F1Score, Meter, evaluate, score
from assay._records import encode, seal
from assay.cli import app
from assay.errors import AssayError, ConfigError, StateError
from assay.metrics import BrierScore, MeanSquaredError, PerSample
from assay.report import Report, Section, Value
from assay.report.per_sample.packed_array import PackedArray
from assay.scoring import count, fragments_of, merge
from assay.verify import Verification, verify_by_report, verify_file, verify_recount
from evaluation.exact_products import classifier, sixteenths

ROWS = 60


def table(seed=0):
    rng = np.random.default_rng(seed)
    target = rng.integers(3, size=ROWS)
    scores = rng.random((ROWS, 3)) + 0.6 * np.eye(3)[target]
    scores /= scores.sum(1, keepdims=True)
    columns = {f"p{k}": scores[:, k] for k in range(3)}
    return pa.table(columns | {"y": target, "g": np.where(np.arange(ROWS) % 3, "a", "b")})


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The file of a table, and the text of its report."""
    file = tmp_path_factory.mktemp("table") / "rows.csv"
    pyarrow.csv.write_csv(table(), file)
    metrics = "accuracy,f1,auroc,log_loss"
    report = score(file, metrics, preds="p0..p2", target="y", slices="g", num_classes=3, n_resamples=100)
    return file, report.to_json()


def found(tmp_path, data, file=None):
    """The first level that contradicts a report."""
    text = data if isinstance(data, bytes | str) else json.dumps(seal(data))
    place = tmp_path / "report.json"
    place.write_bytes(text if isinstance(text, bytes) else text.encode())
    report, checks = verify_file(place)
    if any(each.outcome == "fail" for each in checks) or report is None:
        assert Verification.of("x", checks).exit_code == 1
        return "file"
    if file is not None:
        checks = verify_recount(report, file)
        if any(each.outcome == "fail" for each in checks):
            return "recount"
    return ""


def packed(array):
    return encode(PackedArray.of(array))


def _array(section, *names):
    """An array of a report, in which one number is changed."""
    node = section["samples"]
    for name in names[:-1]:
        node = node[name]
    report = Report.from_json(json.dumps(seal(section["whole"])))
    samples = report.sections[0].samples
    if names[0] == "columns":
        values = np.array(samples.columns[names[1]].values.values)
    else:
        values = np.array(getattr(samples, names[0]).values)
    return node, values


def _set(node, value, by=None):
    def change(section):
        target = section
        for name in node[:-1]:
            target = target[name]
        old = target[node[-1]]
        target[node[-1]] = by(old) if by else value

    return change


def _flip(name):
    def change(section):
        node, values = _array(section, name)
        values[7] = (values[7] + 1) % 3
        node[name] = packed(values)

    return change


def _flip_all(section):
    """A decision and what follows from it in the samples: only the counts tell."""
    _flip("decision")(section)
    node, values = _array(section, "columns", 0, "values")
    node["values"] = packed(np.where(np.arange(ROWS) == 7, ~values.astype(bool), values.astype(bool)))


def _other_dtype(section):
    """Decisions as floats, of which one is another label: they add up to other counts all the same."""
    node, values = _array(section, "decision")
    node["decision"] = packed(np.where(np.arange(ROWS) == 7, (values + 1) % 3, values).astype(np.float64))


def _half(section):
    node, values = _array(section, "target")
    node["target"] = packed(values + np.where(np.arange(ROWS) == 7, 0.5, 0.0))


def _scale_column(section):
    index = next(k for k, each in enumerate(section["samples"]["columns"]) if each["name"] == "log loss")
    node, values = _array(section, "columns", index, "values")
    values[3] += 0.01
    node["values"] = packed(values)


def _swap_counts(section):
    other = Meter(accuracy=Accuracy(num_classes=3))
    other.update(torch.tensor([0, 1]), torch.tensor([0, 1]))
    options = score(table(), "accuracy:num_classes=3", preds="p0..p2", target="y", diagnostics=False)
    section["counts"] = encode(options.sections[0].counts)


def _ulp(number):
    return math.nextafter(number, 2)


VALUE = {"accuracy": 0, "f1": 1, "auroc": 2, "log_loss": 3}
BY_FILE = {
    **{f"{name} by an ulp": _set(("values", k, "value"), None, _ulp) for name, k in VALUE.items()},
    **{f"{name} by a percent": _set(("values", k, "value"), None, lambda x: x + 0.01) for name, k in VALUE.items()},
    "a sign": _set(("values", 0, "value"), None, lambda x: -x),
    "NaN": _set(("values", 1, "value"), "NaN"),
    "the number of samples": _set(("values", 0, "count"), ROWS + 1),
    "which way is better": _set(("values", 1, "higher_is_better"), False),
    "a signature": _set(("values", 1, "signature"), None, lambda x: x.replace("macro", "micro")),
    "n of a signature": _set(("values", 1, "signature"), None, lambda x: x.replace("n:60", "n:600")),
    "the lower end of Wilson's interval": _set(("values", 0, "lower"), None, lambda x: x + 0.015),
    "the upper end": _set(("values", 3, "upper"), None, lambda x: x - 0.001),
    "a decision": _flip("decision"),
    "a decision among floats": _other_dtype,
    "half a target": _half,
    "a target": _flip("target"),
    "a decision with its column": _flip_all,
    "a per-sample loss": _scale_column,
    "rows of the counts": _set(("counts", "rows"), ROWS - 1),
    "the digest of the counts": _set(("counts", "sha256"), "0" * 64),
    "the counts": _swap_counts,
    "a metric of the counts": _set(("counts", "metrics", "f1"), None, lambda x: x.replace("macro", "micro")),
    "a value that is left out": lambda section: section["values"].pop(2),
    "another name": _set(("values", 1, "name"), "F2"),
    "another column": _set(("values", 3, "numerator"), "correct"),
    "an accuracy of a slice": _set(("slices", 0, "values", 0, "value"), None, _ulp),
}
BY_RECOUNT = {
    "F1 of a slice": _set(("slices", 0, "values", 1, "value"), None, lambda x: x + 0.01),
    "an interval of resampled groups": _set(("values", 1, "lower"), None, lambda x: x + 0.015),
    "a cell of a table": _set(("tables", 0, "rows", 0, 1), None, lambda x: x + 1 if not isinstance(x, str) else "9"),
    "a cell of the confusion matrix": _set(("plots", 0, "counts", 0, 0), None, lambda x: x + 1),
    "a table that is left out": lambda section: section["tables"].pop(0),
}


def mutated(text, change):
    data = json.loads(text)
    (section,) = data["sections"]
    section["whole"] = json.loads(text)
    change(section)
    del section["whole"]
    return data


def test_a_sound_report_passes_each_level(stored, tmp_path):
    file, text = stored
    assert found(tmp_path, text, file) == ""
    report, checks = verify_file(tmp_path / "report.json")
    again = verify_recount(report, file)
    assert Verification.of("", checks + again).outcome == "pass"
    assert {each.outcome for each in again} == {"pass"}
    assert found(tmp_path, json.dumps(json.loads(text), indent=7)) == ""


@pytest.mark.parametrize("change", BY_FILE.values(), ids=BY_FILE)
def test_what_contradicts_the_counts_is_found_in_the_file_alone(stored, tmp_path, change):
    assert found(tmp_path, mutated(stored[1], change)) == "file"


@pytest.mark.parametrize("change", BY_RECOUNT.values(), ids=BY_RECOUNT)
def test_what_the_file_cannot_show_is_found_by_a_recount(stored, tmp_path, change):
    assert found(tmp_path, mutated(stored[1], change), stored[0]) == "recount"


@pytest.mark.parametrize(
    ("old", "new"), [('"schema"', '"schemb"'), ("{", "[1]{"), ("assay.report/7", "assay.gate/2"), ("{", "7{")]
)
def test_a_file_that_is_no_report_any_more_is_found(stored, tmp_path, old, new):
    assert found(tmp_path, stored[1].replace(old, new, 1)) == "file"


@pytest.mark.parametrize("text", ["", "7", "[", '{"class": "Accuracy"}', '{"class": 3, "fields": {}}'])
def test_descriptions_of_metrics_that_are_none_are_found(stored, tmp_path, text):
    change = _set(("counts", "metrics", "f1"), text)
    assert found(tmp_path, mutated(stored[1], change)) == "file"


@pytest.mark.parametrize("options", ["", "7", "[", '{"preds": 3}', '{"preds": "p0", "other": 1}'])
def test_recorded_options_that_are_none_are_refused_by_name(stored, options):
    report = Report.from_json(stored[1])
    report = replace(report, origin=replace(report.origin, options=options))
    with pytest.raises(AssayError, match="options"):
        verify_recount(report, stored[0])


@pytest.mark.parametrize("place", [0.001, 0.1, 0.5, 0.9])
def test_a_byte_is_found(stored, tmp_path, place):
    text = bytearray(stored[1].encode())
    text[int(place * len(text))] ^= 4
    assert found(tmp_path, bytes(text)) == "file"
    assert found(tmp_path, stored[1][: int(place * len(text))]) == "file"


def _rows(change):
    frame = table()
    columns = {name: frame.column(name).to_numpy().copy() for name in frame.column_names}
    return pa.table(change(columns))


def _edit(columns):
    columns["p0"][5] += 1e-9
    return columns


def _flipped(columns):
    columns["y"][5] = (columns["y"][5] + 1) % 3
    return columns


OTHER_TABLES = {
    "a dropped row": lambda columns: {name: np.delete(each, 5) for name, each in columns.items()},
    "a row twice": lambda columns: {name: np.append(each, each[-1:]) for name, each in columns.items()},
    "another score": _edit,
    "another target": _flipped,
}


@pytest.mark.parametrize("change", OTHER_TABLES.values(), ids=OTHER_TABLES)
def test_another_table_is_found_also_under_the_digest_of_the_report(stored, tmp_path, change):
    report = Report.from_json(stored[1])
    checks = verify_recount(report, _rows(change))  # in memory: it has no digest of a file
    assert "fail" in {each.outcome for each in checks}
    file = tmp_path / "rows.csv"
    pyarrow.csv.write_csv(_rows(change), file)
    assert [each.outcome for each in verify_recount(report, file) if each.what == "files"] == ["fail"]


def test_the_rows_that_differ_are_named(stored):
    checks = verify_recount(Report.from_json(stored[1]), _rows(_flipped))
    (samples,) = [each for each in checks if each.what == "samples"]
    target = table().column("y")[5].as_py()
    assert samples.found.startswith(f"sample 5: target {target}, now {(target + 1) % 3}")


def test_a_report_without_counts_is_not_enough_evidence(tmp_path):
    place = Report("by hand", [Section("test", [Value("accuracy", 0.9)])]).save(tmp_path / "report.json")
    report, checks = verify_file(place)
    assert Verification.of(report.title, checks).exit_code == 2
    with pytest.raises(StateError, match="descriptions of its metrics"):
        verify_recount(report, table())


def test_a_metric_of_a_function_cannot_be_made_from_its_description(tmp_path):
    metric = PerSample(lambda preds, target: (preds - target).abs(), name="error")
    data = torch.utils.data.TensorDataset(torch.rand(9), torch.rand(9))
    place = evaluate(torch.nn.Identity(), data, {"error": metric}, device="cpu").save(tmp_path / "report.json")
    report, checks = verify_file(place)
    assert Verification.of(report.title, checks).outcome == "not enough evidence"


def test_an_unknown_metric_is_no_contradiction_and_damaged_counts_are_one_whatever_they_are_called(tmp_path):
    metric = PerSample(lambda preds, target: (preds - target).abs(), name="known")
    data = torch.utils.data.TensorDataset(torch.rand(9), torch.rand(9))
    report = evaluate(torch.nn.Identity(), data, {"known": metric, "mse": MeanSquaredError()}, device="cpu")
    _, checks = verify_file(report.save(tmp_path / "report.json"))
    assert next(each.outcome for each in checks if each.what == "counts") == "not checked"
    report = evaluate(torch.nn.Identity(), data, {"the known error": MeanSquaredError()}, device="cpu")
    text = json.loads(report.to_json())
    counts = text["sections"][0]["counts"]
    counts["packed"] = counts["packed"][:-8]
    assert found(tmp_path, text) == "file"
    counts["metrics"] = {"the known error": '{"class": "MeanSquaredError", "fields": {"known": 3}}'}
    assert found(tmp_path, text) == "file"


def test_a_report_of_merged_parts_says_what_made_it_and_is_verified(tmp_path):
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(table(), file, row_group_size=20)
    options = {"preds": "p0..p2", "target": "y", "slices": "g", "n_resamples": 50, "progress": False}
    metrics = {"accuracy": Accuracy(num_classes=3), "auroc": AUROC(num_classes=3)}
    parts = [count(file, metrics, [fragment], **options) for fragment in fragments_of(file)]
    assert len(parts) == 3
    paths = [part.to_file(tmp_path / f"{number}.safetensors") for number, part in enumerate(parts)]
    report = merge(paths).report()
    assert report.origin.call == "merge"
    assert report.origin.call_options()["preds"] == "p0..p2"
    assert report.origin.data.keys() == {"rows.parquet"}
    assert found(tmp_path, report.to_json(), file) == ""
    checks = verify_recount(report, file)
    assert {each.outcome for each in checks} == {"pass"}
    changed = tmp_path / "changed.parquet"
    pyarrow.parquet.write_table(_rows(_flipped), changed)
    assert "fail" in {each.outcome for each in verify_recount(report, changed)}


def test_a_newer_report_is_refused_and_no_contradiction(stored, tmp_path):
    place = tmp_path / "report.json"
    place.write_text(stored[1].replace("assay.report/7", "assay.report/99"), "utf-8")
    with pytest.raises(StateError, match="Update assay"):
        verify_file(place)


def test_a_report_of_several_sections_is_verified_by_its_file_alone(stored, tmp_path):
    report = Report.from_json(stored[1])
    both = replace(report, sections=(report.sections[0], replace(report.sections[0], name="again")))
    read, checks = verify_file(both.save(tmp_path / "report.json"))
    assert Verification.of("", checks).outcome == "pass"
    with pytest.raises(ConfigError, match="2 sections"):
        verify_recount(read, table())


def _model():
    torch.manual_seed(0)
    return classifier(4, 3)


def test_a_second_run_has_the_same_bits_and_another_model_is_found():
    data = torch.utils.data.TensorDataset(sixteenths(40, 4), torch.randint(3, (40,)))
    metrics = {"accuracy": Accuracy(num_classes=3), "f1": F1Score(num_classes=3), "auc": AUROC(num_classes=3)}
    report = evaluate(_model(), data, metrics, device="cpu")
    again = evaluate(_model(), data, metrics, device="cpu", batch_size=7)
    assert {each.outcome for each in verify_by_report(report, again, "rerun")} == {"pass"}
    other = _model()
    with torch.no_grad():
        other[0].bias[0] += 1
    again = evaluate(other, data, metrics, device="cpu")
    checks = {each.what: each.outcome for each in verify_by_report(report, again, "rerun", model="0" * 64)}
    assert checks["values"] == checks["samples"] == checks["counts"] == checks["model"] == "fail"


def test_other_versions_may_round_floats_otherwise_but_not_change_decisions(stored):
    report = Report.from_json(stored[1])
    section = report.sections[0]
    value = section.values[3]
    near = replace(section, values=(*section.values[:3], replace(value, value=value.value * (1 + 1e-9))))
    again = replace(report, sections=(near,))
    of_others = replace(again, environment=report.environment | {"torch": "0.0"})
    assert {each.what: each.outcome for each in verify_by_report(report, again, "rerun")}["values"] == "fail"
    assert {each.what: each.outcome for each in verify_by_report(report, of_others, "rerun")}["values"] == "not checked"


class Rounded(torch.nn.Module):
    """A model whose scores are another processor's: each differs by a few units in the last place."""

    def __init__(self, by):
        super().__init__()
        self.net, self.by = _model(), by

    def forward(self, x):
        return self.net(x) * (1 + self.by)


@pytest.mark.parametrize(("by", "outcome"), [(3e-7, "not checked"), (3e-4, "fail")])
def test_another_processor_may_round_scores_otherwise_but_not_change_decisions(by, outcome):
    def run(by):
        return evaluate(Rounded(by), data, metrics, device="cpu", slices={"class": 1})

    data = torch.utils.data.TensorDataset(sixteenths(40, 4), torch.randint(3, (40,)))
    metrics = {"accuracy": Accuracy(num_classes=3), "brier": BrierScore(num_classes=3), "auc": AUROC(num_classes=3)}
    report, again = run(0.0), run(by)
    here = {each.what: each.outcome for each in verify_by_report(report, again, "rerun")}
    assert here["values"] == here["slices"] == here["samples"] == "fail"
    elsewhere = verify_by_report(report, replace(again, device="another"), "rerun")
    assert {each.outcome for each in elsewhere if each.what in ("values", "slices", "samples")} == {outcome}
    assert Verification.of("", elsewhere).exit_code == (2 if outcome == "not checked" else 1)
    assert all("near, on another processor" in each.found for each in elsewhere if each.outcome == "not checked")
    (section,) = again.sections
    decisions = section.samples.decision.values.copy()
    decisions[3] += 1
    changed = replace(section, samples=replace(section.samples, decision=PackedArray.of(decisions)))
    checks = verify_by_report(report, replace(again, sections=(changed,), device="another"), "rerun")
    assert {each.what: each.outcome for each in checks}["samples"] == "fail"


def test_the_command_has_the_exit_codes_of_a_gate(stored, tmp_path):
    def code(*arguments):
        return CliRunner().invoke(app, ["verify", *map(str, arguments)]).exit_code

    file, text = stored
    place = tmp_path / "report.json"
    place.write_text(text, "utf-8")
    assert code(place) == code(place, "--data", file, "--json") == 0
    place.write_text(json.dumps(seal(mutated(text, BY_FILE["a decision"]))), "utf-8")
    assert code(place) == 1
    place.write_text(Report("by hand", [Section("test", [Value("accuracy", 0.9)])]).to_json(), "utf-8")
    assert code(place) == 2


def _drawn(text, rng):
    """One of many mutations, and the level that can see it; None where the content stayed the same."""
    kind = rng.randrange(6)
    if kind == 0:
        raw = bytearray(text.encode())
        raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(7)
        try:
            same = json.loads(raw) == json.loads(text)
        except ValueError:
            same = False
        return (text, "") if same else (bytes(raw), "file")
    if kind == 1:
        k, size = rng.randrange(4), 10.0 ** -rng.randrange(2, 14)
        return mutated(text, _set(("values", k, "value"), None, lambda x: x + size)), "file"
    if kind == 2:
        place = rng.randrange(ROWS)

        def change(section):
            name = rng.choice(["decision", "target"])
            node, values = _array(section, name)
            values[place] = (values[place] + rng.randrange(1, 3)) % 3
            node[name] = packed(values)

        return mutated(text, change), "file"
    if kind == 3:

        def shorten(section):
            raw = list(section["counts"]["packed"])
            at = rng.randrange(len(raw) - 4)
            raw[at] = "A" if raw[at] != "A" else "B"
            section["counts"]["packed"] = "".join(raw)

        return mutated(text, shorten), "file"
    if kind == 4:
        change = rng.choice([each for name, each in BY_FILE.items() if name != "the counts"])
        return mutated(text, change), "file"
    return mutated(text, rng.choice(list(BY_RECOUNT.values()))), "recount"


@pytest.mark.slow
def test_a_thousand_mutations_are_found_by_the_first_level_that_can_see_them(stored, tmp_path):
    file, text = stored
    rng, counted = random.Random(0), {}
    while sum(counted.values()) < 1000:
        data, level = _drawn(text, rng)
        if level:
            seen = found(tmp_path, copy.deepcopy(data), file)
            assert seen == level, (counted, data if isinstance(data, bytes) else "")
            counted[level] = counted.get(level, 0) + 1
    assert min(counted.values()) > 100


def test_per_sample_values_of_float32_predictions_are_near_the_exact_value(tmp_path):
    """Differences of float32 numbers are rounded before they are squared; the value is counted exactly."""
    generator = torch.Generator().manual_seed(0)
    preds, target = torch.rand(300, generator=generator) * 300, torch.rand(300, generator=generator) * 300
    table = pa.table({"p": preds.numpy(), "t": target.numpy(), "s": torch.arange(300).remainder(2).numpy()})
    report = score(table, "rmse,mae", preds="p", target="t", slices=["s"])
    assert Verification.of("", verify_file(report.save(tmp_path / "report.json"))[1]).outcome == "pass"
