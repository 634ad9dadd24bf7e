"""Meters, parts and reports whose bytes or whose content was changed are refused, or give values.

Bytes are changed anywhere. Content is changed as a program would: a number, a name or a list in the JSON, or a tensor
of a meter, with the checksum that fits, so that only checks of the content are left. What loads then must also compute,
or raise one error of assay.
"""

from __future__ import annotations

import json
import random
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load, save_file

from assay._records import seal
from assay.errors import AssayError
from assay.meter import Meter
from assay.meter.file import checksum
from assay.metrics import AUROC, Accuracy, F1Score, MeanSquaredError, Quantile, WordErrorRate
from assay.report import Report
from assay.scoring.partial import Partial, merge
from assay.scoring.stored_predictions import count, score
from cli.loaders.test_damaged import mutated

pytestmark = pytest.mark.slow
BYTES, CONTENTS = 300, 250
TABLE = {
    "p": [0, 1, 2, 1, 0, 2, 1, 1, 0, 2],
    "y": [0, 1, 1, 1, 0, 2, 0, 1, 2, 2],
    "s": ["a", "b", None, "a", "b", "a", "a", "b", "a", "b"],
}
OPTIONS: dict[str, Any] = {"preds": "p", "target": "y", "slices": ["s"]}


def _meter(path: Path, metrics: dict[str, Any], *batch: Any) -> None:
    meter = Meter(**metrics)
    meter.update(*batch)
    meter.to_file(path)


def _numbers() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.rand(9, generator=generator), torch.randint(0, 2, (9,), generator=generator)


WRITERS: dict[str, Callable[[Path], object]] = {
    "labels.meter": lambda path: _meter(
        path,
        {"a": Accuracy(num_classes=3), "f": F1Score(num_classes=3)},
        torch.tensor([0, 1, 2]),
        torch.tensor([0, 1, 1]),
    ),
    "scores.meter": lambda path: _meter(path, {"a": AUROC(), "b": Accuracy(threshold=0.2)}, *_numbers()),
    "sums.meter": lambda path: _meter(path, {"m": MeanSquaredError() / 2}, _numbers()[0], _numbers()[0].flip(0)),
    "values.meter": lambda path: _meter(path, {"q": Quantile(0.9)}, _numbers()[0]),
    "texts.meter": lambda path: _meter(path, {"w": WordErrorRate()}, ["a b", "c"], ["a c", "c"]),
    "rows.part": lambda path: count(pa.table(TABLE), "accuracy:num_classes=3", "rows", **OPTIONS).to_file(path),
    "run.report": lambda path: score(pa.table(TABLE), "accuracy:num_classes=3", **OPTIONS).save(path),
}


def _read(path: Path) -> Any:
    """The values that a file gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # crafted values may also be NaN
        if path.suffix == ".meter":
            return {name: torch.as_tensor(value).tolist() for name, value in Meter.from_file(path).compute().items()}
        report = merge([Partial.from_file(path)]).report() if path.suffix == ".part" else Report.load(path)
        report.to_text()
        return [(each.name, each.value, each.lower, each.count) for each in report.sections[0].values]


def _is_equal(a: Any, b: Any) -> bool:
    return bool(json.dumps(a) == json.dumps(b))  # NaN is itself


@pytest.mark.parametrize("name", WRITERS)
def test_changed_bytes_are_refused_or_change_nothing(tmp_path, name):
    path, draw = tmp_path / name, random.Random(name)
    WRITERS[name](path)
    whole, right = path.read_bytes(), _read(path)
    refused = 0
    for k in range(BYTES):
        path.write_bytes(mutated(draw, whole))
        try:
            assert _is_equal(_read(path), right), (k, path.read_bytes())
        except AssayError:
            refused += 1
    assert refused > BYTES / 2


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path to each value in JSON."""
    yield path
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in entries:
        yield from _places(each, (*path, key))


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    2,
    1 << 62,
    1 << 64,
    -0.5,
    1e308,
    "",
    "x",
    "weighted",
    [],
    {},
    [[]],
    [1, 2],
    {"a": 1},
]


def _changed(draw: random.Random, data: Any) -> Any:
    """JSON of which one value is another one, is gone, or is there twice."""
    data = json.loads(json.dumps(data))
    place = draw.choice([each for each in _places(data) if each])
    inner = data
    for key in place[:-1]:
        inner = inner[key]
    how = draw.randrange(5)
    if how == 0:
        del inner[place[-1]]
    elif how == 1 and isinstance(inner, list):
        inner.append(inner[place[-1]])
    elif how == 1:
        inner[f"{place[-1]}2"] = inner[place[-1]]
    elif how == 2:
        inner[place[-1]] = [inner[place[-1]]]
    else:
        inner[place[-1]] = draw.choice(ODD)
    return data


def _rewritten(draw: random.Random, path: Path, whole: bytes) -> None:
    """The file with other content, and the checksum or digest of that."""
    if path.suffix == ".report":
        content = _changed(draw, {k: v for k, v in json.loads(whole).items() if k != "digest"})
        path.write_text(json.dumps(seal(content) if isinstance(content, dict) else content), "utf-8")
        return
    (size,) = struct.unpack("<Q", whole[:8])
    header, body = json.loads(whole[8 : 8 + size]), bytearray(whole[8 + size :])
    about = header["__metadata__"]
    key = next(each for each in about if each != "sha256")
    if path.suffix == ".meter" and draw.random() < 0.3:
        place = draw.randrange(0, max(1, len(body) - 8))
        body[place : place + 8] = struct.pack("<q", draw.choice([-1, 0, 1, 7, 1 << 40, (1 << 63) - 1, -1 << 63]))[
            : len(body) - place
        ]
    else:
        about[key] = json.dumps(_changed(draw, json.loads(about[key])))
    entries = {name: entry for name, entry in header.items() if name != "__metadata__"}
    text = json.dumps(entries).encode()
    tensors = load(struct.pack("<Q", len(text)) + text + bytes(body))
    save_file(tensors, path, {key: about[key], "sha256": checksum(about[key], tensors)})


@pytest.mark.parametrize("name", WRITERS)
def test_changed_content_with_its_checksum_raises_one_error_or_gives_values(tmp_path, name):
    path, draw = tmp_path / name, random.Random(name)
    WRITERS[name](path)
    whole = path.read_bytes()
    for k in range(CONTENTS):
        _rewritten(draw, path, whole)
        try:
            _read(path)
        except AssayError:
            continue
        except Exception as error:
            raise AssertionError(f"{k}: {path.read_bytes()[:3000]!r}") from error


def test_a_changed_table_is_counted_or_refused(tmp_path):
    path, draw = tmp_path / "t.parquet", random.Random(5)
    pq.write_table(pa.table(TABLE), path, row_group_size=4)
    whole, refused = path.read_bytes(), 0
    for _ in range(BYTES):
        path.write_bytes(mutated(draw, whole))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                score(path, "accuracy:num_classes=3", **OPTIONS)
        except AssayError as error:
            refused += "t.parquet" in str(error) or pytest.fail(str(error))
    assert refused > BYTES / 4
