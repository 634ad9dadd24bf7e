"""Which kernel is taken for how many rows: the table, what the device has, and what stands in for what it has not."""

from __future__ import annotations

import pytest

from assay.native import weights
from assay.quantize import Scheme, dispatch
from assay.quantize.dispatch import DEFAULTS, DispatchTable, at, regimes
from assay.quantize.kernels import KERNELS
from thinning import every_third

INT4, INT8, SHAPE = Scheme.parse("int4"), Scheme.parse("int8"), (4096, 4096)
OWN = DispatchTable(DEFAULTS)
DTYPES = ("bfloat16", "float16", "float32")


def test_every_step_of_the_table_leads_up_to_a_path():
    for (device, dtype, name), steps in DEFAULTS.items():
        assert device in ("cpu", "cuda", "mps", "xpu", "*")
        assert dtype in (*DTYPES, "*")
        assert Scheme.parse(name).bits in range(2, 9)
        assert steps[0][0] == 1
        assert [rows for rows, _ in steps] == sorted(rows for rows, _ in steps)
        assert {kernel for _, kernel in steps} <= KERNELS.keys()


@every_third
@pytest.mark.parametrize("dtype", [*DTYPES, "float64"])
@pytest.mark.parametrize("device", ["cpu", "cuda:1", "mps", "xpu", "npu"])
@pytest.mark.parametrize("text", ["int4", "int4:g32:sym", "int8", "int3:g16", "int8:dynamic", "int4:dynamic"])
@pytest.mark.parametrize("shape", [SHAPE, (19, 384), (8, 128 * 3)])
def test_what_is_chosen_can_be_taken_there_and_begins_at_one_row(device, dtype, text, shape):
    scheme = Scheme.parse(text)
    steps = regimes(dtype, device, scheme, shape, OWN)
    assert steps[0][0] == 1
    assert [rows for rows, _ in steps] == sorted({rows for rows, _ in steps})
    for rows, name in steps:
        assert KERNELS[name].why_not(device, dtype, scheme, shape) == ""
        assert at(rows, regimes(dtype, device, scheme, shape, OWN)) == name
        assert at(max(1, rows - 1), regimes(dtype, device, scheme, shape, OWN)) != name or rows == 1


@pytest.mark.skipif(bool(weights.why_not(32)), reason="assay was installed without a C compiler")
def test_on_the_cpu_compiled_code_multiplies_few_rows_in_every_dtype():
    for dtype in DTYPES:
        for text in ("int4", "int8", "int3:g64", "int4:dynamic"):
            steps = regimes(dtype, "cpu", Scheme.parse(text), SHAPE, OWN)
            assert [name for _, name in steps] == ["native", "dequantize"]


def test_without_compiled_code_torchs_kernels_take_its_place_where_they_are_fast(monkeypatch):
    monkeypatch.setattr(weights, "why_not", lambda *_: "assay was installed without a C compiler")
    assert regimes("bfloat16", "cpu", INT4, SHAPE, OWN)[0] == (1, "int4pack-cpu")
    assert regimes("bfloat16", "cpu", INT8, SHAPE, OWN)[0] == (1, "int8pack")
    for dtype in ("float16", "float32"):  # torch's kernels would be ten to a hundred times slower than the dense layer
        for scheme in (INT4, INT8):
            assert regimes(dtype, "cpu", scheme, SHAPE, OWN) == ((1, "dequantize"),)


def test_other_devices():
    assert regimes("bfloat16", "mps", INT4, SHAPE, OWN) == ((1, "int4pack"), (32, "dequantize"))
    assert regimes("bfloat16", "mps", INT4, SHAPE, OWN, release="2.4")[0] == (1, "int4pack")
    assert regimes("float16", "cuda", INT4, SHAPE, OWN) == ((1, "dequantize"),)
    assert regimes("bfloat16", "cuda", Scheme.parse("int8:dynamic"), SHAPE, OWN) == ((1, "int8dynamic"),)
    assert regimes("bfloat16", "mps", Scheme.parse("int8:dynamic"), SHAPE, OWN) == ((1, "dequantize"),)


def test_the_most_particular_entry_counts():
    steps = {("*", "*", "int4"): ((1, "dequantize"),), ("cpu", "*", "int4"): ((1, "int4pack-cpu"),)}
    assert at(1, regimes("float32", "cpu", INT4, SHAPE, DispatchTable(steps))) == "int4pack-cpu"
    steps[("cpu", "float32", "int4")] = ((1, "dequantize"),)
    assert at(1, regimes("float32", "cpu", INT4, SHAPE, DispatchTable(steps))) == "dequantize"
    steps[("cpu", "*", "int4:g64")] = ((1, "int4pack-cpu"), (5, "dequantize"))
    assert at(4, regimes("float32", "cpu", Scheme.parse("int4:g64"), SHAPE, DispatchTable(steps))) == "int4pack-cpu"
    assert at(5, regimes("float32", "cpu", Scheme.parse("int4:g64"), SHAPE, DispatchTable(steps))) == "dequantize"


def test_where_nothing_is_said_the_weight_is_expanded():
    assert regimes("bfloat16", "cpu", INT4, SHAPE, DispatchTable({})) == ((1, "dequantize"),)


def test_of_two_paths_from_the_same_row_the_first_that_can_be_taken():
    steps = ((1, "int4pack"), (1, "int4pack-cpu"), (8, "dequantize"))
    table = DispatchTable({("*", "*", "int4"): steps})
    assert regimes("bfloat16", "mps", INT4, SHAPE, table) == ((1, "int4pack"), (8, "dequantize"))
    assert regimes("bfloat16", "cpu", INT4, SHAPE, table) == ((1, "int4pack-cpu"), (8, "dequantize"))


def test_rows_between_the_steps():
    steps = ((1, "a"), (8, "b"), (64, "c"))
    assert [at(rows, steps) for rows in (0, 1, 7, 8, 63, 64, 10**6)] == ["a", "a", "a", "b", "b", "c", "c"]
    assert dispatch._distinct_steps([(1, "a"), (1, "b"), (4, "a"), (8, "c")]) == ((1, "a"), (8, "c"))
