"""Inspect's logs and lighteval's details as reports; the files are written after the sources of both."""

import json
import zipfile

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay.errors import ConfigError, StateError
from assay.integrations import read_inspect, read_lighteval
from assay.report import compare, gate

GRADES = ["C", "I", "C", "P", "C", "N", "C", "C"]
NUMBERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}


def log(epochs=1, grades=GRADES, accuracy=None, **header):
    """A log of Inspect: its header and its samples by name."""
    samples = {}
    for k in range(len(grades) * epochs):
        number, epoch = k % len(grades), k // len(grades) + 1
        scores = {"match": {"value": grades[number], "answer": "4"}}
        sample = {"id": number, "epoch": epoch, "input": f"{number}?", "target": "4", "scores": scores}
        samples[f"samples/{number}_epoch_{epoch}.json"] = sample
    mean = sum(map(NUMBERS.__getitem__, grades)) / len(grades) if accuracy is None else accuracy
    metrics = {"accuracy": {"name": "accuracy", "value": mean}, "stderr": {"name": "stderr", "value": 0.1}}
    about = {
        "version": 2,
        "status": "success",
        "eval": {"task": "sums", "model": "mockllm/model", "created": "2026-01-02T03:04:05+00:00"},
        "results": {
            "completed_samples": len(samples),
            "scores": [{"name": "match", "scorer": "match", "reducer": "mean", "metrics": metrics}],
        },
    }
    return about | header, samples


def write(file, header, samples):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {"_journal/start.json": {}, **samples, "header.json": header}.items():
            archive.writestr(name, json.dumps(content))
    return file


def test_a_log_of_inspect_has_its_samples(tmp_path):
    report = read_inspect(write(tmp_path / "a.eval", *log()))
    (section,) = report.sections
    (accuracy,) = section.values
    assert (report.title, section.name, report.created) == ("mockllm/model", "sums", "2026-01-02T03:04:05+00:00")
    assert (accuracy.name, accuracy.value, accuracy.numerator) == ("accuracy", 5.5 / 8, "accuracy")
    assert section.samples.column("accuracy").tolist() == [NUMBERS[grade] for grade in GRADES]
    others = [
        read_inspect(write(tmp_path / f"{k}.eval", *log(grades=grades))) for k, grades in enumerate(("CICC", "CCCC"))
    ]
    assert compare(*others).deltas[0].paired
    header, samples = log()
    (tmp_path / "a.json").write_text(json.dumps(header | {"samples": list(samples.values())}))
    assert read_inspect(tmp_path / "a.json") == report


class Zstandard:
    """What zipfile compresses with, where it knows how."""

    def __init__(self):
        self.content = b""

    def compress(self, content):
        self.content += content
        return b""

    def flush(self):
        return pa.compress(self.content, codec="zstd", asbytes=True)


@pytest.fixture
def in_zstandard(tmp_path, monkeypatch):
    """A log as Inspect 0.3.285 writes it."""
    with monkeypatch.context() as patch:
        patch.setattr(zipfile, "ZIP_DEFLATED", 93)
        patch.setattr(zipfile, "_check_compression", lambda compression: None)
        patch.setattr(zipfile, "_get_compressor", lambda *args: Zstandard())
        return write(tmp_path / "zstandard.eval", *log())


def test_a_log_in_zstandard_is_the_same(in_zstandard, tmp_path):
    with zipfile.ZipFile(in_zstandard) as archive:
        assert {each.compress_type for each in archive.infolist()} == {93}
    assert read_inspect(in_zstandard) == read_inspect(write(tmp_path / "a.eval", *log()))


def test_damaged_zstandard_is_refused_by_name(in_zstandard):
    whole = in_zstandard.read_bytes()
    with zipfile.ZipFile(in_zstandard) as archive:
        info = archive.getinfo("header.json")
    start = whole.index(pa.compress(json.dumps(log()[0]).encode(), codec="zstd", asbytes=True))
    directory = whole.rindex(b"PK\x01\x02", 0, whole.rindex(b"header.json"))
    for place in (start + info.compress_size - 1, start, directory + 16, directory + 26):  # data, CRC, size
        damaged = bytearray(whole)
        damaged[place] ^= 1
        in_zstandard.write_bytes(damaged)
        with pytest.raises(StateError, match=r"zstandard\.eval: got a file that is cut short"):
            read_inspect(in_zstandard)


def test_a_compression_that_nothing_reads_says_how_to_convert(in_zstandard):
    other = in_zstandard.read_bytes()
    in_zstandard.write_bytes(other.replace((93).to_bytes(2, "little"), (97).to_bytes(2, "little")))
    with pytest.raises(StateError, match="inspect log convert --to json"):
        read_inspect(in_zstandard)


def test_epochs_of_a_sample_are_a_cluster(tmp_path):
    grades = ["C", "I"] * 10
    single, four = (read_inspect(write(tmp_path / f"{k}.eval", *log(k, grades))) for k in (1, 4))
    assert four.sections[0].samples.cluster == "sample of Inspect"
    narrow, wide = (each.sections[0].values[0] for each in (single, four))
    assert four.sections[0].values[0].count == 80
    assert wide.upper - wide.lower >= 0.9 * (narrow.upper - narrow.lower)  # four equal answers are one observation
    assert gate(four, {"min": {"accuracy": 0.35}}).outcome != "pass"


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"status": "cancelled"}, "status 'cancelled'"),
        ({"eval": {}}, "JSON of something else"),
        ({"results": {"completed_samples": 9}}, "8 samples, expected 9"),
        ({"results": {}}, "no value of any score"),
    ],
)
def test_a_log_of_inspect_that_is_not_whole_is_refused(tmp_path, change, got):
    header, samples = log()
    with pytest.raises(StateError, match=got):
        read_inspect(write(tmp_path / "a.eval", header | change, samples))


def test_damaged_logs_of_inspect_are_refused_by_name(tmp_path):
    whole = write(tmp_path / "whole.eval", *log()).read_bytes()
    (tmp_path / "cut.eval").write_bytes(whole[:-40])
    with pytest.raises(StateError, match=r"cut\.eval: got a file that is cut short"):
        read_inspect(tmp_path / "cut.eval")
    with zipfile.ZipFile(tmp_path / "started.eval", "w") as archive:
        archive.writestr("_journal/start.json", "{}")
    with pytest.raises(StateError, match=r"started\.eval: got a log without header"):
        read_inspect(tmp_path / "started.eval")
    with pytest.raises(StateError, match=r"0\.9 in the results, 0\.6875 in the samples"):
        read_inspect(write(tmp_path / "other.eval", *log(accuracy=0.9)))
    write(tmp_path / "more.eval", *log())
    with pytest.raises(ConfigError, match=r"5 results \(cut\.eval, "):
        read_inspect(tmp_path)
    with pytest.raises(ConfigError, match="no such file"):
        read_inspect(tmp_path / "none.eval")


WHEN = "2026-01-02T03-04-05.678"


def lighteval(folder, right, column="metric"):
    """What lighteval writes: the results, and the details of a task."""
    values = {"acc": sum(right) / len(right), "acc_stderr": 0.1, "f1_corpus": 0.3}
    content = {"config_general": {"model_name": "tiny"}, "results": {"sums|0": values, "all": values}}
    (folder / "results" / "tiny").mkdir(parents=True)
    details = folder / "details" / "tiny" / WHEN
    details.mkdir(parents=True)
    results = folder / "results" / "tiny" / f"results_{WHEN}.json"
    results.write_text(json.dumps(content))
    docs = [{"query": f"{k}?", "choices": ["a", "b"], "gold_index": [0]} for k in range(len(right))]
    metrics = [{"acc": each} for each in right]
    rows = {"doc": docs, column: metrics if column == "metric" else [str(each) for each in metrics]}
    pq.write_table(pa.table(rows), details / f"details_sums|0_{WHEN}.parquet")
    return results


@pytest.mark.parametrize("column", ["metric", "metrics"])  # newer versions, and older ones that wrote text
def test_results_of_lighteval_have_their_samples(tmp_path, column):
    first = read_lighteval(lighteval(tmp_path / "a", [1, 0, 1, 1] * 5, column))
    second = read_lighteval(lighteval(tmp_path / "b", [1, 1, 1, 1] * 5).parents[2])
    section = first.sections[0]
    assert [value.name for value in section.values] == ["acc", "f1_corpus"]
    assert section.values[0].numerator == "acc"
    assert section.values[1].numerator == ""
    assert first.title == "tiny"
    delta = compare(first, second).deltas[0]
    assert (delta.paired, round(delta.difference, 9)) == (True, 0.25)


def test_damaged_results_of_lighteval_are_refused_by_name(tmp_path):
    results = lighteval(tmp_path / "a", [1, 0, 1, 1])
    (details,) = (tmp_path / "a").rglob("*.parquet")
    whole = details.read_bytes()
    details.write_bytes(whole[:-20])
    with pytest.raises(StateError, match=r"details_sums.*cut short"):
        read_lighteval(results)
    pq.write_table(pa.table({"metric": [{"acc": 0}] * 4}), details)
    with pytest.raises(StateError, match="the details of these results"):
        read_lighteval(results)
    details.unlink()
    report = read_lighteval(results)
    assert report.sections[0].samples is None
    assert "--save-details" in report.notes[0]
    results.write_text("{")
    with pytest.raises(StateError, match="JSON that ends or breaks at character 1 of 1"):
        read_lighteval(results)
