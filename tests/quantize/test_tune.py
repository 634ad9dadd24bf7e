"""What is measured on a machine: saved as JSON, read by the dispatch, and not believed elsewhere."""

from __future__ import annotations

import itertools
import json
import math
import re
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay._records import seal
from assay.devices.processor import processor
from assay.errors import AssayWarning, ConfigError, DeviceError
from assay.pretend import pretend
from assay.quantize import QuantizedLinear, Scheme, quantize_weight, tuning, tuning_records
from assay.quantize.dispatch import DEFAULTS, DispatchTable, default_table, regimes
from assay.quantize.kernels import KERNELS
from assay.quantize.tuning import SWITCH, show, steps_of, tune
from assay.quantize.tuning_records import TuningRecord, TuningResult

INT4 = Scheme.parse("int4")
SHAPE = (4096, 4096)


def keep(result) -> Path:
    return result.save(tuning_records.file_for("cpu"))


def made(steps=((1, "int4pack-cpu"), (77, "dequantize")), **changes) -> TuningResult:
    measured = (
        TuningRecord("bfloat16", "int4", steps, (1, 128), {"int4pack-cpu": (1.0, math.nan), "dequantize": (9, 9)}),
    )
    said = {"torch": torch.__version__, "processor": processor("cpu"), "date": "2026-01-02", "threads": 4}
    return TuningResult(**({"device": "cpu", "shape": SHAPE, "measured": measured} | said | changes))


@pytest.fixture
def steady(monkeypatch):
    """Other tests run at the same time."""
    monkeypatch.setattr(tuning, "STEADY", math.inf)


def test_a_machine_is_measured_and_the_dispatch_goes_by_it(tuned_folder, steady):
    found = tune("cpu", schemes=("int4", "int8"), dtypes=("bfloat16",), shape=(64, 128), rows=(1, 32), seconds=0.5)
    assert [(each.scheme, each.dtype) for each in found.measured] == [("int4", "bfloat16"), ("int8", "bfloat16")]
    for each in found.measured:
        assert each.rows == (1, 32)
        assert set(each.milliseconds) >= {"dequantize", "int4pack-cpu" if each.scheme == "int4" else "int8pack"}
        assert all(ms > 0 for times in each.milliseconds.values() for ms in times)
        assert regimes("bfloat16", "cpu", Scheme.parse(each.scheme), (64, 128)) == each.steps
    kept = json.loads((tuned_folder / "quantize-cpu.json").read_text())
    assert kept["torch"] == torch.__version__
    assert kept["processor"] == processor("cpu")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["date"])
    assert "int4, bfloat16: from 1 rows" in show(found)


def test_nothing_is_kept_unless_it_shall_be(tuned_folder, steady):
    tune("cpu", schemes=("int8",), dtypes=("bfloat16",), shape=(64, 128), rows=(1,), seconds=0.1, keep=False)
    assert list(tuned_folder.iterdir()) == []


def test_a_machine_that_is_busy_is_told_and_nothing_is_kept(tuned_folder, monkeypatch):
    monkeypatch.setattr(tuning, "STEADY", 0.5)
    with pytest.warns(AssayWarning, match=r"tune: got medians \d\.\d times the fastest calls, expected 0\.5 times or"):
        tune("cpu", schemes=("int8",), dtypes=("bfloat16",), shape=(64, 128), rows=(1,), seconds=0.1)
    assert list(tuned_folder.iterdir()) == []


def test_what_was_measured_comes_before_what_assay_brings():
    before = regimes("bfloat16", "cpu", INT4, SHAPE)
    assert (
        before == regimes("bfloat16", "cpu", INT4, SHAPE, DispatchTable()) != ((1, "int4pack-cpu"), (77, "dequantize"))
    )
    assert default_table("cpu").source == "assay's own measurements"
    keep(made())
    default_table.cache_clear()
    assert default_table("cpu").source == "measured on this machine on 2026-01-02"
    assert regimes("bfloat16", "cpu", INT4, SHAPE) == ((1, "int4pack-cpu"), (77, "dequantize"))
    assert regimes("bfloat16", "cpu", Scheme.parse("int4:g32"), SHAPE)[-1][0] == 77  # its family was measured
    int8 = Scheme.parse("int8")
    assert regimes("bfloat16", "cpu", int8, SHAPE) == regimes("bfloat16", "cpu", int8, SHAPE, DispatchTable())


def test_a_path_that_never_wins_is_never_taken():
    keep(made(((1, "dequantize"),)))
    default_table.cache_clear()
    assert regimes("bfloat16", "cpu", INT4, SHAPE) == ((1, "dequantize"),)
    layer = QuantizedLinear(quantize_weight(torch.eye(32, 128), "int4"), dtype=torch.bfloat16)
    assert layer.weight.kernels(torch.bfloat16) == ((1, "dequantize"),)


def test_the_file_says_what_was_measured():
    found = made()
    keep(found)
    again, why = tuning_records.read("cpu", KERNELS)
    assert why == ""
    assert again == found
    assert again.measured[0].milliseconds["dequantize"] == (9.0, 9.0)
    assert math.isnan(again.measured[0].milliseconds["int4pack-cpu"][1])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"torch": "1.0"}, r"was measured with torch 1\.0, and this is \d"),
        ({"processor": "Another"}, r"was measured with processor Another, and this is .+"),
    ],
)
def test_measurements_of_another_machine_are_not_used_and_it_is_said(changes, words):
    keep(made(**changes))
    default_table.cache_clear()
    table = default_table("cpu")
    assert table.steps == DEFAULTS
    assert re.search(words, table.note)
    assert table.note.endswith(": measure again with assay quantize --tune")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data | {"schema": "assay.tuning/2"},
        lambda data: data | {"digest": "0"},
        lambda data: seal({name: value for name, value in data.items() if name != "torch"}),
        lambda data: seal(data | {"threads": "some"}),
        lambda data: seal(data | {"shape": []}),
        lambda data: _with_steps(data, [1, "int4pack-cpu"], [1, "dequantize"]),
        lambda data: _with_steps(data, [2, "int4pack-cpu"], [77, "dequantize"]),
        lambda data: _with_steps(data, [1, "int4pack-cpu"], ["many", "dequantize"]),
        lambda data: _with_steps(data, [1, "int4pack-cpu"], [77, "unheard-of"]),
        lambda data: _with_steps(data),
    ],
)
def test_a_file_that_cannot_be_read_is_not_used_and_it_is_said(tuned_folder, change):
    path = keep(made())
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    default_table.cache_clear()
    assert default_table("cpu").steps == DEFAULTS
    assert "quantize-cpu.json " in default_table("cpu").note


def test_without_a_cache_folder_nothing_is_kept(monkeypatch, steady):
    monkeypatch.setattr(tuning_records, "cache_folder", lambda: None)
    tune("cpu", schemes=("int8",), dtypes=("bfloat16",), shape=(64, 128), rows=(1,), seconds=0.1)
    assert tuning_records.read("cpu", KERNELS) == (None, "")


def _with_steps(data, *steps):
    return seal(data | {"measured": [data["measured"][0] | {"steps": list(steps)}]})


TIMES = st.floats(0.01, 100)


@given(st.data(), st.integers(1, 6))
def test_steps_take_the_least_time(data, count):
    rows = [4**k for k in range(count)]
    times = {name: data.draw(st.lists(TIMES, min_size=count, max_size=count)) for name in "ab"}
    steps = steps_of(rows, times)
    assert steps[0][0] == 1
    firsts = [at for at, _ in steps]
    assert firsts == sorted(set(firsts))
    assert all(one[1] != two[1] for one, two in itertools.pairwise(steps))

    def cost(taken) -> float:
        changes = sum(one != two for one, two in itertools.pairwise(taken))
        return sum(math.log(times[name][k]) for k, name in enumerate(taken)) + SWITCH * changes

    taken = [next(name for at, name in reversed(steps) if at <= n) for n in rows]
    assert cost(taken) == pytest.approx(min(cost(each) for each in itertools.product("ab", repeat=count)))


def test_a_small_lead_is_no_reason_to_change():
    assert steps_of((1, 8), {"a": (1.0, 1.0), "b": (2.0, 0.98)}) == ((1, "a"),)


def test_a_path_that_was_not_timed_any_more_is_not_taken():
    assert steps_of((1, 8, 64), {"a": (1.0, 9.0, math.nan), "b": (9.0, 1.0, 1.0)})[-1][1] == "b"


def test_devices_that_are_not_here():
    with pytest.raises(
        DeviceError, match=r"device: got cuda:7 \(.*expected one of this machine\. Measure on the machine"
    ):
        tune("cuda:7")
    with pretend("mps"), pytest.raises(DeviceError, match=r"device: got mps \(it is pretended\), expected one of this"):
        tune("mps")


def test_nothing_to_choose_between(monkeypatch):
    monkeypatch.setattr(tuning, "KERNELS", {"dequantize": KERNELS["dequantize"]})
    with pytest.raises(ConfigError, match="device: got cpu with one kernel only, expected several"):
        tune("cpu", schemes=("int5",))


def test_arguments_that_cannot_be():
    with pytest.raises(ConfigError, match=r"rows: got \(8, 1\), expected ascending numbers from 1 on"):
        tune("cpu", rows=(8, 1))
    with pytest.raises(ConfigError, match="seconds: got 0, expected more than 0"):
        tune("cpu", seconds=0)
    with pytest.raises(ConfigError, match="scheme: got 'int44'"):
        tune("cpu", schemes=("int44",))
    with pytest.raises(ConfigError, match="dtypes: got 'float99'"):
        tune("cpu", dtypes=("float99",))
