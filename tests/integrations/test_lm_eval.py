"""Reports of what lm-eval wrote: its own numbers, samples that pair, and files that are refused."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.errors import ConfigError, InvalidValuesError, StateError
from assay.integrations import read_lm_eval
from assay.integrations.lm_eval.samples import LoggedSamples, of_task
from assay.report import GateRule, Report, Value, compare, gate

RUNS = Path(__file__).parent / "lm_eval_runs"
TASKS = {"tiny_choice", "tiny_text", "tiny_number"}


def results(folder):
    (file,) = folder.glob("results_*.json")
    return file


@pytest.fixture
def run(tmp_path):
    """A copy of a run that may be damaged."""
    return Path(shutil.copytree(RUNS / "first", tmp_path / "run"))


def samples_file(folder, task="tiny_choice"):
    (file,) = folder.glob(f"samples_{task}_*.jsonl")
    return file


def changed(folder, change):
    file = results(folder)
    found = json.loads(file.read_text())
    change(found)
    file.write_text(json.dumps(found))


def values(report, task):
    (section,) = [each for each in report.sections if each.name == task]
    return {value.name: value for value in section.values}


def answered(folder, task, change):
    """Have other responses, as `change` makes them of the old ones, in the samples of a task."""
    file = samples_file(folder, task)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row["resps"] = change(row["resps"])
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return len(rows)


def test_log_likelihoods_that_are_not_finite_are_refused_with_their_number_by_task(run):
    """The best of choices that are NaN is the first one: an accuracy would be the share of samples whose answer is."""
    choices = answered(run, "tiny_choice", lambda resps: [[["nan", "False"]], *resps[1:]])
    texts = answered(run, "tiny_text", lambda resps: [["-inf"]])
    answered(run, "tiny_number", lambda resps: [["nan"]])  # what was generated is a text, whatever it says
    message = f"tiny_choice: {choices} of {choices} samples, tiny_text: {texts} of {texts} samples; in all"
    with pytest.raises(InvalidValuesError, match=f"got NaN or infinity .{message} {choices + texts}"):
        read_lm_eval(run)


def test_ties_of_the_best_two_choices_are_noted(run):
    assert not any("equally probable" in note for note in read_lm_eval(run).notes)
    count = answered(run, "tiny_choice", lambda resps: [[["-2.5", "False"]], [["-2.5", "False"]], [["-9", "False"]]])
    (note,) = [note for note in read_lm_eval(run).notes if "equally probable" in note]
    assert f"tiny_choice: {count} of {count}." in note


def test_every_number_is_that_of_lm_eval():
    report, told = read_lm_eval(RUNS / "first"), json.loads(results(RUNS / "first").read_text())
    assert {section.name for section in report.sections} == TASKS
    for task in TASKS:
        found = values(report, task)
        for key, number in told["results"][task].items():
            metric, comma, filter_ = key.partition(",")
            if comma and not metric.endswith("_stderr"):
                assert found[metric if filter_ == "none" else key].value == number
    assert (report.title, report.device, report.environment["lm_eval"]) == ("m0", "cpu", "0.4.13")
    assert report.notes == ("Measured by lm-eval 0.4.13.",)
    assert Report.from_json(report.to_json()) == report


def test_columns_are_what_lm_eval_logged_and_intervals_come_from_them():
    found = read_lm_eval(RUNS / "first")
    (choice,) = [each for each in found.sections if each.name == "tiny_choice"]
    rows = [json.loads(line) for line in samples_file(RUNS / "first").read_text().splitlines()]
    right = {row["doc_id"]: bool(row["acc"]) for row in rows}
    assert dict(zip(choice.samples.ids.values.tolist(), choice.samples.column("acc").tolist(), strict=True)) == right
    accuracy = values(found, "tiny_choice")["acc"]
    assert (accuracy.higher_is_better, accuracy.count, accuracy.confidence_level) == (True, 24, 0.95)
    assert accuracy.note == "Clopper-Pearson interval"
    assert accuracy.lower < accuracy.value < accuracy.upper


def test_perplexities_have_logarithms_with_columns():
    found = values(read_lm_eval(RUNS / "first"), "tiny_text")
    for name in ("word_perplexity", "byte_perplexity"):
        log = found[f"log {name}"]
        assert math.exp(log.value) == pytest.approx(found[name].value, rel=1e-12)
        assert math.exp(log.lower) == pytest.approx(found[name].lower)
        assert log.numerator
        assert log.higher_is_better is found[name].higher_is_better is False
    assert found["bits_per_byte"].value == pytest.approx(found["log byte_perplexity"].value / math.log(2), rel=1e-12)
    assert found["bits_per_byte"].denominator


def test_two_runs_are_compared_in_pairs():
    compared = compare(*(read_lm_eval(RUNS / name) for name in ("first", "second")))
    deltas = {(delta.section, delta.metric): delta for delta in compared.deltas}
    for task, metric in [
        ("tiny_choice", "acc"),
        ("tiny_text", "bits_per_byte"),
        ("tiny_text", "log word_perplexity"),
        ("tiny_number", "exact_match,last-number"),
    ]:
        delta = deltas[task, metric]
        assert delta.paired, delta.note
        assert delta.note == ""
    assert deltas["tiny_choice", "acc"].method == "McNemar mid-p, wider of Tango and Bonett-Price intervals"


def test_other_documents_are_not_paired(run):
    file = samples_file(run)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[3]["doc_hash"] = "another"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    delta = compare(read_lm_eval(RUNS / "first"), read_lm_eval(run)).delta("acc")
    assert not delta.paired
    assert "not paired" in delta.note


def test_a_gate_on_a_run():
    reports = [read_lm_eval(RUNS / name) for name in ("first", "second")]
    assert gate(reports[1], [GateRule("max-drop", "tiny_choice/acc", 0.9)], reports[0]).exit_code == 0
    assert gate(reports[1], [GateRule("min", "tiny_choice/acc", 0.9)]).exit_code == 1
    assert gate(reports[1], [GateRule("max", "bits_per_byte", 100.0)]).exit_code == 2  # of eight documents
    assert gate(reports[1], [GateRule("max", "bits_per_byte", 100.0)], point=True).exit_code == 0


def test_a_run_without_samples_says_so_and_has_the_intervals_of_lm_eval(run):
    samples_file(run).unlink()
    report = read_lm_eval(run)
    found = values(report, "tiny_choice")["acc"]
    assert not found.numerator
    told = json.loads(results(run).read_text())["results"]["tiny_choice"]
    assert (found.upper - found.lower) / 2 == pytest.approx(1.959963984540054 * told["acc_stderr,none"])
    assert report.notes[1] == (
        "No samples were kept of: tiny_choice. Run lm_eval with --log_samples to compare in pairs."
    )


def test_groups_and_limits(run):
    def change(found):
        found["results"]["tiny"] = {"alias": "tiny", "acc,none": 0.3, "acc_stderr,none": "N/A", "sample_len": 24}
        found["results"]["empty"] = {"alias": "empty", " ": " "}
        found["group_subtasks"] = {"tiny": ["tiny_choice", "tiny_number"]}
        found["config"]["limit"] = 24

    changed(run, change)
    report = read_lm_eval(run, title="mine")
    group = values(report, "tiny")["acc"]
    assert (group.value, group.lower, group.numerator) == (0.3, None, "")
    assert {each.name for each in report.sections} == {*TASKS, "tiny"}
    assert report.title == "mine"
    assert report.notes[1:] == ("Only some samples of each task were measured: limit 24.",)


@pytest.mark.parametrize(
    ("metric", "raw", "value", "aggregation", "names"),
    [
        ("acc", [1.0, 0.0], 0.5, "mean", ["acc"]),
        ("perplexity", [-1.0, -2.0], math.exp(1.5), "perplexity", ["perplexity", "log perplexity"]),
        ("mcc", [[1, 1], [0, 1]], 0.0, "matthews_corrcoef", ["mcc"]),
        ("bleu", [["a", "b"], ["c", "d"]], 3.0, "bleu", ["bleu"]),
        ("odd", [1.0, 2.0], 9.0, "", ["odd"]),
        ("undefined", [math.nan, 1.0], math.nan, "mean", ["undefined"]),
        ("none", [], 0.5, "mean", ["none"]),
    ],
)
def test_what_a_metric_becomes(metric, raw, value, aggregation, names):
    logged = LoggedSamples("none", list(range(len(raw))), {metric: raw}, "")
    terms = of_task([logged], metric, "none", Value(metric, value), aggregation, "task")
    assert [each.name for each in terms.values] == names
    with_column = metric in ("acc", "perplexity")
    assert bool(terms.values[-1].numerator) == with_column


def cut_results(run):
    file = results(run)
    file.write_text(file.read_text()[:3000])


def cut_within_a_line(run):
    file = samples_file(run)
    file.write_text(file.read_text()[:-200])


def cut_after_a_line(run):
    file = samples_file(run)
    file.write_text("".join(file.read_text().splitlines(keepends=True)[:-1]))


def emptied(run):
    samples_file(run).write_text("")


def written_twice(run):
    file = samples_file(run)
    file.write_text(file.read_text() * 2)


def of_other_samples(run):
    file = samples_file(run)
    file.write_text(file.read_text().replace('"acc": 1.0', '"acc": 0.0'))


def of_no_samples(run):
    samples_file(run).write_text('{"text": "a"}\n')


def of_something_else(run):
    results(run).write_text('{"results": {"a": {"b": 1}}}')


def of_bytes(run):
    results(run).write_bytes(b"\xff\xfe")


def with_bytes(run):
    file = samples_file(run)
    file.write_bytes(b"\xff" + file.read_bytes())


def of_a_list(run):
    results(run).write_text("[1, 2]")


def with_other_filters(run):
    file = samples_file(run, "tiny_number")
    file.write_text(file.read_text().replace('"doc_id": 9,', '"doc_id": 19,', 1))


def without_values(run):
    changed(run, lambda found: found.update(results={"tiny_choice": {"alias": "tiny_choice"}}))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (cut_results, "results_.*: got JSON that ends or breaks at character .*, expected whole results of lm-eval"),
        (cut_within_a_line, "samples_tiny_choice.*: got line 24 that is cut short or no JSON"),
        (cut_after_a_line, "samples_tiny_choice.*: got 23 samples of filter 'none', expected 24, as results_"),
        (emptied, "samples_tiny_choice.*: got no samples, expected 24"),
        (written_twice, "samples_tiny_choice.*: got doc_id 0 twice, expected each sample once"),
        (of_other_samples, "tiny_choice: acc: got 0.33.* in the results, 0.0 in the samples"),
        (of_no_samples, "samples_tiny_choice.*: got line 1 without doc_id"),
        (of_something_else, "got JSON of something else|JSON without results"),
        (of_bytes, "results_.*: got bytes that are not UTF-8, expected results of lm-eval"),
        (with_bytes, "samples_tiny_choice.*: got line 1 that is cut short or no JSON"),
        (of_a_list, "got JSON without results of tasks, expected results of lm-eval"),
        (with_other_filters, "samples_tiny_number.*: got filters with other samples"),
        (without_values, "got no value of any task"),
    ],
)
def test_damaged_files_are_refused(run, damage, message):
    damage(run)
    with pytest.raises(StateError, match=message):
        read_lm_eval(run)


def test_paths_that_are_not_one_run(tmp_path):
    with pytest.raises(ConfigError, match="nowhere: got no such file, expected what lm_eval --output_path wrote"):
        read_lm_eval(tmp_path / "nowhere")
    with pytest.raises(ConfigError, match="got a folder without results_"):
        read_lm_eval(tmp_path)
    with pytest.raises(ConfigError, match=r"got 2 results .first/results_.*, expected those of one run"):
        read_lm_eval(RUNS)
    assert read_lm_eval(results(RUNS / "first")) == read_lm_eval(RUNS / "first")


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "assay", *map(str, arguments)], capture_output=True, text=True)


@pytest.mark.exhaustive  # it starts a process
def test_on_the_command_line(tmp_path):
    for name in ("first", "second"):
        done = command("import", "lm-eval", RUNS / name, "--out", tmp_path / f"{name}.json", "--title", name)
        assert done.returncode == 0, done.stderr
        assert "exact_match,last-number" in done.stdout
    assert json.loads(command("import", "lm-eval", RUNS / "first", "--json").stdout)["schema"] == "assay.report/7"
    done = command("compare", tmp_path / "first.json", tmp_path / "second.json")
    assert done.returncode == 0, done.stderr
    assert "McNemar" in done.stdout
    done = command("import", "helm", RUNS / "first")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "TOOL: got 'helm', expected one of inspect, lighteval, lm-eval" in done.stderr


def test_reading_needs_no_torch():
    code = f"import sys; from assay.integrations import read_lm_eval; read_lm_eval({str(RUNS / 'first')!r})"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)


MODEL = """
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast
letters = [chr(code) for code in range(32, 127)] + ["\\n", "<end>", "<unknown>"]
inner = Tokenizer(models.WordLevel({each: k for k, each in enumerate(letters)}, unk_token="<unknown>"))
inner.pre_tokenizer, inner.decoder = pre_tokenizers.Split("", "isolated"), decoders.Fuse()
ends = {name: "<end>" for name in ("eos_token", "pad_token", "bos_token")}
PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="<unknown>", **ends).save_pretrained("tiny")
end = letters.index("<end>")
shape = {"n_positions": 128, "n_embd": 16, "n_layer": 1, "n_head": 2, "bos_token_id": end, "eos_token_id": end}
GPT2LMHeadModel(GPT2Config(vocab_size=len(letters), **shape)).save_pretrained("tiny")
"""


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("lm_eval") is None, reason="make test-integrations installs lm-eval")
def test_what_the_installed_lm_eval_writes(tmp_path):
    """As the runs beside this file were made, which are its output without what it says of the machine."""
    shutil.copytree(RUNS / "tasks", tmp_path / "tasks")
    offline = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    options = {"cwd": tmp_path, "env": os.environ | offline | {"OMP_NUM_THREADS": "1"}, "check": True, "timeout": 300}
    subprocess.run([sys.executable, "-c", MODEL], **options)
    arguments = "--model hf --model_args pretrained=tiny --include_path tasks --output_path out --log_samples"
    tasks = ["--tasks", ",".join(sorted(TASKS)), "--device", "cpu"]
    subprocess.run([sys.executable, "-m", "lm_eval", "run", *arguments.split(), *tasks], **options)
    report = read_lm_eval(tmp_path / "out")
    assert {section.name for section in report.sections if section.samples} == TASKS
    assert values(report, "tiny_text")["bits_per_byte"].numerator
