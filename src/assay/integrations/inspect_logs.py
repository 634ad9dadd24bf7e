"""Inspect: a log that it wrote becomes a report, with its samples, so that runs are compared in pairs.

Only the file is read: inspect_ai need not be installed, and no torch is needed. Zstandard takes pyarrow.
"""

from __future__ import annotations

import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from assay.data.tables.arrow import arrow
from assay.errors import StateError, describe
from assay.integrations.result_files import digest_of_data, results_file
from assay.integrations.sample_means import is_mean, with_interval
from assay.report import Report, Samples, Section, Table, Value
from assay.report.per_sample.packed_array import Array

LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""What Inspect takes a grade for: correct, partial, incorrect, no answer."""
SPREADS = ("stderr", "std", "var", "bootstrap_stderr")
"""Metrics of a score that say how it spreads; assay finds that from the samples."""
_AGAIN = "Run inspect eval again, or name the log of a run that ended"
_ZSTANDARD = 93
_NAME_LENGTH = 26  # where a local file header has the length of its name, and then that of its extra field


@dataclass(frozen=True)
class _Log:
    """What a log holds: how it began and ended, and its samples in the order of ids and epochs."""

    header: Mapping[str, Any]
    samples: Sequence[Mapping[str, Any]]


def read_inspect(path: str | os.PathLike[str], title: str = "") -> Report:
    """A log of Inspect, as a report of one section, with its samples.

    A score whose metric is the mean over samples has a column of what each contributed, so `compare` pairs two runs
    sample by sample and `gate` finds intervals. The epochs of a sample are a cluster: answers to the same question
    resemble each other. Other metrics have the number alone. Where a log has several scores, metrics are
    `metric,score`.

    Args:
        path: a `.eval` or `.json` log, or a folder with one in it.
        title: of the report; the name of the model by default.

    Raises:
        ConfigError: there is no such file, or there are several.
        StateError: the log was cut short, is of something else, its run did not end, or its samples are not those
            of its results.

    Source: `log/_recorders/eval.py`, `log/_log.py` and `scorer/_metric.py` of inspect_ai.
    """
    file = results_file(Path(path), "*.eval", "one log of Inspect", _AGAIN)
    log = _zipped(file) if file.suffix == ".eval" else _plain(file)
    about, results = _part(log.header, "eval"), _part(log.header, "results")
    status = log.header.get("status")
    if not about.get("task"):
        raise StateError(describe(str(file), "JSON of something else", "a log of Inspect", _AGAIN))
    if status != "success":
        raise StateError(describe(str(file), f"a run with status {status!r}", "status 'success'", _AGAIN))
    expected = results.get("completed_samples")
    if isinstance(expected, int) and len(log.samples) != expected:
        got = f"{len(log.samples):,} samples"
        raise StateError(describe(str(file), got, f"{expected:,}, as its results say", _AGAIN))
    section = _section(file, str(about["task"]), log, results)
    return Report(title or str(about.get("model") or file.stem), (section,), created=str(about.get("created") or ""))


def _zipped(file: Path) -> _Log:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "header.json" not in names:
                got = "a log without header.json" if "_journal/start.json" in names else "a zip of something else"
                raise StateError(describe(str(file), got, "the log of a run that ended", _AGAIN))
            header = _json(_content(archive, "header.json"), file, "header.json")
            samples = [_json(_content(archive, name), file, name) for name in names if _is_sample(name)]
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise StateError(
            describe(str(file), "a file that is cut short or no zip", "a log of Inspect", _AGAIN)
        ) from error
    except NotImplementedError as error:
        do = "Convert it: inspect log convert --to json --output-dir DIR FILE"
        got = "a compression that Python cannot read"
        raise StateError(describe(str(file), got, "deflate or Zstandard", do)) from error
    return _ordered(header, samples, file)


def _content(archive: zipfile.ZipFile, name: str) -> bytes:
    """A file of an archive, also in Zstandard, which Inspect writes and Python reads from 3.14 on.

    Source: APPNOTE.TXT of PKWARE, 4.3.7 (local file header) and 4.4.5 (compression method 93).
    """
    try:
        return archive.read(name)
    except NotImplementedError:
        info = archive.getinfo(name)
        if info.compress_type != _ZSTANDARD or archive.fp is None:
            raise
    pa = arrow()
    archive.fp.seek(info.header_offset + _NAME_LENGTH)
    lengths = struct.unpack("<HH", archive.fp.read(4))
    archive.fp.seek(sum(lengths), os.SEEK_CUR)
    packed = archive.fp.read(info.compress_size)
    try:
        content: bytes = pa.decompress(packed, info.file_size, codec="zstd", asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise zipfile.BadZipFile(name) from error
    if zlib.crc32(content) != info.CRC:
        raise zipfile.BadZipFile(name)
    return content


def _is_sample(name: str) -> bool:
    return name.startswith("samples/") and name.endswith(".json")


def _plain(file: Path) -> _Log:
    content = _json(file.read_bytes(), file, file.name)
    samples = content.get("samples")
    return _ordered(content, samples if isinstance(samples, list) else [], file)


def _json(content: bytes, file: Path, name: str) -> dict[str, Any]:
    try:
        found = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise StateError(
            describe(str(file), f"{name} that is cut short or no JSON", "a log of Inspect", _AGAIN)
        ) from error
    if not isinstance(found, dict):
        raise StateError(describe(str(file), f"{name} without names", "a log of Inspect", _AGAIN))
    return found


def _ordered(header: Mapping[str, Any], samples: Sequence[Any], file: Path) -> _Log:
    for sample in samples:
        if not isinstance(sample, dict) or not isinstance(sample.get("id"), int | str):
            raise StateError(describe(str(file), "a sample without an id", "samples of Inspect", _AGAIN))
    keys = [(str(sample["id"]), int(sample.get("epoch") or 1)) for sample in samples]
    if len(set(keys)) < len(keys):
        raise StateError(describe(str(file), "an epoch of a sample twice", "each once", _AGAIN))
    return _Log(header, [samples[k] for k in sorted(range(len(keys)), key=keys.__getitem__)])


def _part(content: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = content.get(key)
    return part if isinstance(part, dict) else {}


def _section(file: Path, task: str, log: _Log, results: Mapping[str, Any]) -> Section:
    scores = [each for each in results.get("scores") or () if isinstance(each, dict)]
    found = [
        (score, str(name), metric["value"])
        for score in scores
        for name, metric in _part(score, "metrics").items()
        if name not in SPREADS and isinstance(metric, dict) and isinstance(metric.get("value"), int | float)
    ]
    if not found:
        raise StateError(describe(str(file), "no value of any score", "the results of a run", _AGAIN))
    columns: dict[str, Array] = {}
    values, notes = [], []
    for score, metric, number in found:
        name = f"{metric},{score.get('name')}" if len(scores) > 1 else metric
        better = True if metric == "accuracy" else None
        value = Value(name, float(number), count=len(log.samples) or None, higher_is_better=better)
        terms = _terms(log.samples, score)
        if terms is not None and is_mean(terms, float(number)):
            columns[name] = terms.astype(bool) if metric == "accuracy" and np.isin(terms, (0, 1)).all() else terms
            value = replace(value, numerator=name)
        elif terms is not None and metric in ("accuracy", "mean") and score.get("reducer") in (None, "mean"):
            got = f"{number!r} in the results, {float(terms.mean())!r} in the samples"
            raise StateError(describe(f"{task}: {name}", got, "the mean of the samples", _AGAIN))
        else:
            notes.append((name, "no mean over samples: the number alone"))
        values.append(value)
    samples = _samples(log.samples, columns)
    shown = tuple(with_interval(value, samples) for value in values)
    tables = (Table("Values without samples", ("value", "why"), tuple(notes)),) if notes else ()
    return Section(task, shown, tables, samples=samples)


def _terms(samples: Sequence[Mapping[str, Any]], score: Mapping[str, Any]) -> Array | None:
    """What each sample has of a score, as Inspect makes numbers of grades; None where one has no number."""
    numbers = [_number_of(_part(sample, "scores"), score) for sample in samples]
    known = [number for number in numbers if number is not None]
    return np.array(known, np.float64) if known and len(known) == len(numbers) else None


def _number_of(scores: Mapping[str, Any], score: Mapping[str, Any]) -> float | None:
    of_scorer = scores.get(str(score.get("scorer")), scores.get(str(score.get("name"))))
    value = of_scorer.get("value") if isinstance(of_scorer, dict) else None
    if isinstance(value, dict):
        value = value.get(str(score.get("name")))
    if isinstance(value, str):
        return LETTERS.get(value)
    return float(value) if isinstance(value, bool | int | float) else None


def _samples(samples: Sequence[Mapping[str, Any]], columns: Mapping[str, Array]) -> Samples | None:
    """The columns with their ids; where samples have several epochs, these are a cluster."""
    if not columns:
        return None
    names = [str(sample["id"]) for sample in samples]
    data = digest_of_data([sample.get("input"), sample.get("target")] for sample in samples)
    if len(set(names)) == len(names):
        return Samples.pack(names, columns, data=data)
    ids = [f"{name}, epoch {sample.get('epoch') or 1}" for name, sample in zip(names, samples, strict=True)]
    codes = np.unique(names, return_inverse=True)[1]
    return Samples.pack(ids, columns, data=data, clusters=codes, cluster="sample of Inspect")
