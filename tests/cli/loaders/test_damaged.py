"""Damaged files of every kind: loaded, or refused with an error of assay that names the file; no other exception."""

from __future__ import annotations

import io
import random
import sys
import warnings
import zipfile
import zlib

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from assay.cli.config import resolve
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import open_model
from assay.cli.options.measurement import EvaluateCommand
from assay.errors import AssayError, StateError
from assay.integrations.lm_eval.logged_results import read_lm_eval
from assay.meter.file import MeterDescription
from assay.quantize.planning.recipe import Recipe
from assay.quantize.streaming.tensor_source import TensorSource
from assay.report import Report
from assay.wrappers import Tracker
from thinning import every_third

RNG = np.random.default_rng(3)
X, Y = RNG.normal(size=(20, 3)).astype(np.float32), RNG.integers(0, 3, 20)
IDS = np.array([f"sample {k}" for k in range(20)])


def linear():
    torch.manual_seed(3)
    return nn.Linear(4, 3)


def _rows(join):
    return [join(k) for k in range(20)]


def _table(path):
    if path.suffix == ".csv":
        lines = ["a,b,labels,ids", *_rows(lambda k: f"{X[k, 0]},{X[k, 1]},{Y[k]},{IDS[k]}")]
        path.write_text("\n".join(lines) + "\n", "utf-8")
    elif path.suffix == ".jsonl":
        lines = _rows(lambda k: f'{{"a": {X[k, 0]}, "b": {X[k, 1]}, "labels": {Y[k]}, "ids": "{IDS[k]}"}}')
        path.write_text("\n".join(lines) + "\n", "utf-8")
    else:
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        table = arrow.table({"a": X[:, 0], "b": X[:, 1], "labels": Y, "ids": IDS})
        parquet.write_table(table, path, row_group_size=7)


def _picture(path):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(RNG.integers(0, 255, (9, 8, 3)).astype(np.uint8)).save(path)


def _scripted(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.script(linear()).save(path)


WRITERS = {
    "d.npz": lambda path: np.savez(path, x=X, labels=Y, ids=IDS),
    "compressed.npz": lambda path: np.savez_compressed(path, x=X, labels=Y, ids=IDS),
    "d.safetensors": lambda path: save_file({"x": torch.tensor(X), "labels": torch.tensor(Y)}, path),
    "d.parquet": _table,
    "d.csv": _table,
    "d.jsonl": _table,
    "w.pt": lambda path: torch.save(linear().state_dict(), path),
    "legacy.pt": lambda path: torch.save(linear().state_dict(), path, _use_new_zipfile_serialization=False),
    "w.safetensors": lambda path: save_file(linear().state_dict(), path),
    "s.ts": _scripted,
    "x.png": _picture,
    "x.jpg": _picture,
    "x.gif": _picture,
    "x.bmp": _picture,
    "x.webp": _picture,
}
CHECKED = ("d.npz", "compressed.npz", "w.pt", "s.ts")  # what has checksums


@pytest.fixture
def read(tmp_path, options, model):
    """What a file gives: tensors and texts by name."""

    def data(path):
        given = {} if path.suffix == ".safetensors" or path.is_dir() else {"ids": "ids"}
        batches = list(open_data(options(path, **given), model, {}).data)
        return {name: [part for batch in batches for part in batch[name]] for name in batches[0]}

    def weights(path):
        return open_model(str(path), factory=f"{__name__}:linear", allow_code=path.suffix == ".ts").model.state_dict()

    sys.modules.setdefault(__name__, sys.modules[__name__])
    return lambda path: (
        weights(path) if path.name[0] in "wls" else data(path.parents[1] if path.name[0] == "x" else path)
    )


def mutated(draw, data):
    """Bytes that somebody changed, cut off, put in or took out."""
    place, how = draw.randrange(len(data)), draw.randrange(4)
    if how == 0:
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 2, 6))):
            changed[draw.randrange(len(data))] = draw.randrange(256)
        return bytes(changed)
    if how == 1:
        return data[:place]
    if how == 2:
        return data[:place] + draw.randbytes(draw.randrange(1, 9)) + data[place:]
    return data[:place] + data[place + draw.randrange(1, 30) :]


@every_third
@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, read, name, count):
    path = tmp_path / "set" / "a" / name
    path.parent.mkdir(parents=True)
    WRITERS[name](path)
    whole, right, draw = path.read_bytes(), read(path), random.Random(name)
    refused = 0
    for k in range(count):
        path.write_bytes(mutated(draw, whole))
        try:
            found = read(path)
        except AssayError as error:
            refused += str(path.parents[1]) in str(error) or pytest.fail(f"{k}: {error}")
            continue
        if name in CHECKED:
            assert found.keys() == right.keys(), k
            assert all(np.array_equal(found[each], right[each]) for each in right), k
    assert refused > count / 4


def _npz(path, entries, method=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in entries.items():
            archive.writestr(name, data)
    return path


def _npy(shape, held):
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue() + bytes(held)


@pytest.mark.parametrize("shape", [(10**11,), (2**40, 2**40), (21, 3), (19, 3)])
def test_an_array_that_says_it_is_larger_than_it_is_takes_no_memory(tmp_path, options, model, shape):
    path = _npz(tmp_path / "d.npz", {"x.npy": _npy(shape, 240), "labels.npy": _npy((20,), 80)})
    with pytest.raises(StateError, match=r"d\.npz: x: got a file that cannot be read .*240 bytes of float32 for shape"):
        open_data(options(path), model, {})


def test_a_size_that_deflate_cannot_reach_is_refused(tmp_path, options, model):
    path = _npz(tmp_path / "d.npz", {"x.npy": _npy((20, 3), 240), "labels.npy": _npy((20,), 80)})
    data = bytearray(path.read_bytes())
    held = _npy((20, 3), 240)
    claimed = (10**9).to_bytes(4, "little")
    sizes = len(held).to_bytes(4, "little")
    assert zlib.crc32(held)
    path.write_bytes(bytes(data).replace(sizes, claimed, 2))
    with pytest.raises(StateError, match=r"d\.npz: x: got a file that cannot be read"):
        open_data(options(path), model, {})


@pytest.mark.parametrize("method", [6, 12, 14, 95, 99])
def test_a_compression_that_python_does_not_have_is_told(tmp_path, options, model, method):
    path = _npz(tmp_path / "d.npz", {"x.npy": _npy((20, 3), 240), "labels.npy": _npy((20,), 80)})
    data = path.read_bytes()
    for mark, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        parts = data.split(mark)
        parts[1:] = [part[: place - 4] + method.to_bytes(2, "little") + part[place - 2 :] for part in parts[1:]]
        data = mark.join(parts)
    path.write_bytes(data)
    with pytest.raises(StateError, match=r"d\.npz.*: got a file that cannot be read"):
        open_data(options(path), model, {})


def test_a_version_of_zip_that_python_does_not_have_is_told(tmp_path, options, model):
    path = _npz(tmp_path / "d.npz", {"x.npy": _npy((20, 3), 240)})
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 6] = 166
    path.write_bytes(bytes(data))
    with pytest.raises(
        StateError, match=r"d\.npz: got a file that cannot be read \(NotImplementedError: zip file version"
    ):
        open_data(options(path), model, {})


def test_weights_with_a_changed_byte_are_refused(tmp_path):
    """torch loads them: its reader of zip files is built without checksums."""
    path = tmp_path / "w.pt"
    torch.save(linear().state_dict(), path)
    data = bytearray(path.read_bytes())
    data[bytes(data).index(linear().weight.detach().numpy().tobytes()) + 2] ^= 64
    path.write_bytes(bytes(data))
    assert not torch.equal(torch.load(path)["weight"], linear().weight)
    with pytest.raises(StateError, match=r"w\.pt: got a file that cannot be read .*CRC"):
        open_model(str(path), factory=f"{__name__}:linear")


def test_weights_that_were_written_without_checksums_are_loaded(tmp_path):
    path = tmp_path / "w.pt"
    before = torch.serialization.get_crc32_options()
    try:
        torch.serialization.set_crc32_options(False)
        torch.save(linear().state_dict(), path)
    finally:
        torch.serialization.set_crc32_options(before)
    assert torch.equal(open_model(str(path), factory=f"{__name__}:linear").model.weight, linear().weight)


DEEP = "[" * 100_000
READERS = {
    "run.toml": (f"a = {DEEP}", lambda path: resolve(EvaluateCommand, {"config": path})),
    "config.json": (DEEP, lambda path: open_model(str(path.parent))),
    "results_1.json": (DEEP, read_lm_eval),
    "recipe.json": (DEEP, Recipe.parse),
    "recipe.toml": (f"a = {DEEP}", Recipe.parse),
    "model.safetensors.index.json": (DEEP, lambda path: TensorSource(path.parent)),
    "description": (DEEP, lambda path: MeterDescription.from_json(path.read_text("utf-8"), str(path))),
    "tracker.json": (DEEP, Tracker.from_file),
    "report.json": (DEEP, Report.load),
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_nested_too_deeply_is_told(tmp_path, name):
    text, read = READERS[name]
    (tmp_path / name).write_text(text, "utf-8")
    with pytest.raises(AssayError, match=r"got .*, expected"):
        read(tmp_path / name)
