"""Samples in a report: packed tightly, given back exactly, refused where they are damaged or do not fit."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import pickle
import zlib

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from assay._records import seal
from assay.errors import ConfigError, DtypeError, InputError, ShapeError, StateError
from assay.report import Report, Samples, Section, Slice, Value
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.samples import align, is_known_to_be_the_same

SERIES = (
    st.lists(st.booleans())
    | st.lists(st.integers(-(2**63), 2**63 - 1))
    | st.lists(st.integers(-200, 300))
    | st.lists(st.floats())
    | st.lists(st.floats(width=16))
    | st.lists(st.text())
)


def right(*flags: int, **more: object) -> Samples:
    return Samples.pack(range(len(flags)), {"correct": np.array(flags, dtype=bool)}, **more)


def report(samples: Samples, value: float = 0.75) -> Report:
    return Report("r", [Section("test", [Value("accuracy", value, numerator="correct")], samples=samples)])


@given(SERIES)
@example([-1, 2**63 - 1])  # the step between them is beyond int64
def test_every_series_comes_back_exactly(series):
    packed = PackedArray.of(series)
    again = PackedArray.from_data(
        json.loads(json.dumps(packed.__dict__ | {"values": 0}, default=str)) and _data(packed), "x"
    )
    assert again == packed
    values = again.values.tolist()
    assert len(values) == len(series) == len(packed)
    assert all(a == b or (a != a and b != b) for a, b in zip(values, series, strict=True))
    assert [type(a) for a in values] == [type(b) for b in series]


def _data(packed: PackedArray) -> dict[str, object]:
    return {name: getattr(packed, name) for name in ("form", "dtype", "count", "size", "digest", "data")}


@pytest.mark.parametrize(
    ("series", "form", "budget"),
    [
        (range(5, 300_005, 3), "range", 0.001),
        (np.random.default_rng(0).random(100_000) < 0.9, "bits", 0.11),
        (np.random.default_rng(0).random(100_000) < 0.5, "bits", 0.17),
        (np.random.default_rng(0).integers(10, size=100_000), "numbers", 0.7),
        (np.sort(np.random.default_rng(0).permutation(1_000_000)[:100_000]), "differences", 1.0),
        (np.random.default_rng(0).random(100_000, dtype=np.float32).astype(float), "numbers", 5.0),
        (np.random.default_rng(0).random(100_000), "numbers", 10.7),
    ],
)
def test_bytes_a_sample_stay_within_the_budget(series, form, budget):
    packed = PackedArray.of(series)
    assert packed.form == form
    assert len(packed.data) / len(packed) < budget


def test_a_yes_or_no_column_with_ids_takes_less_than_two_bytes_a_sample():
    flags = np.random.default_rng(0).random(10_000) < 0.9
    samples = Samples.pack(np.random.default_rng(1).permutation(60_000)[:10_000], {"correct": flags})
    small = Samples.pack(range(10_000), {"correct": flags})
    without = len(Report("r", [Section("test")]).to_json())
    sizes = [len(Report("r", [Section("test", samples=each)]).to_json()) - without for each in (small, samples)]
    assert sizes[0] < 2000
    assert sizes[1] / 10_000 < 3.0


def test_arrays_lists_and_host_tensors_are_taken():
    for flags in ([True, False], np.array([True, False]), torch.tensor([True, False])):
        assert PackedArray.of(flags) == PackedArray.of([True, False])
    assert PackedArray.of(torch.tensor([3, 5])).values.tolist() == [3, 5]
    assert PackedArray.of(np.array(["a", "b\0"], dtype=object)).values.tolist() == ["a", "b\0"]
    assert PackedArray.of(np.array([1, 2], dtype=">i4")) == PackedArray.of([1, 2])


def test_values_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        right(1, 0).column("correct")[0] = False


@pytest.mark.parametrize(
    ("series", "error", "message"),
    [
        ([1, "a"], DtypeError, "ids: got int, str, expected booleans, integers within int64, floats"),
        ([None], DtypeError, "ids: got NoneType, expected"),
        ([2**63], DtypeError, "ids: got uint64, expected .* integers within int64"),
        ([2**70], DtypeError, "ids: got int, expected .* integers within int64"),
        ([1j], DtypeError, "ids: got complex128"),
        ([[1, 2]], ShapeError, r"ids: got shape \(1, 2\), expected one value for each sample. Pass one dimension."),
        ([[1], [1, 2]], DtypeError, "ids: got list that NumPy does not take"),
        (torch.ones(2, dtype=torch.bfloat16), DtypeError, "ids: got Tensor that NumPy does not take"),
        ([0.5, 1.5], DtypeError, "Samples.ids: got float64, expected integers or strings. Pass indices or names."),
        ([3, 4, 3], ConfigError, "Samples.ids: got 3 more than once, expected each id once. Give each sample its own"),
        ([3, 3, 3], ConfigError, "Samples.ids: got 3 more than once"),
        (["a", "b", "a"], ConfigError, "Samples.ids: got 'a' more than once"),
    ],
)
def test_ids_that_cannot_be_are_refused(series, error, message):
    with pytest.raises(error, match=message):
        Samples.pack(series, {})


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Samples.pack(range(3), {"correct": [True]}),
            ShapeError,
            r"Samples.columns\['correct'\]: got 1 values, expected 3, one for each id. Pass as many.",
        ),
        (lambda: right(1, 0, target=[1]), ShapeError, "Samples.target: got 1 values, expected 2"),
        (lambda: Samples.pack([1], {"x": ["a"]}), DtypeError, "got texts, expected booleans or numbers"),
        (
            lambda: Samples(PackedArray.of([1]), right(1).columns * 2),
            ConfigError,
            "Samples.columns: got 2 columns with 1 names, expected a name of its own for each",
        ),
        (
            lambda: right(1).column("loss"),
            ConfigError,
            r"column: got 'loss', expected one of the columns \('correct'\)",
        ),
    ],
)
def test_samples_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_report_keeps_its_samples(tmp_path):
    samples = Samples.pack(
        ["a", "b", "c", "d"],
        {"correct": [True, True, False, True], "loss": [0.1, math.inf, math.nan, 2.0]},
        decision=["cat", "dog", "cat", "dog"],
        target=[0.5, 1.0, math.nan, 2.0],
        data="pets 2",
    )
    kept = report(samples)
    again = Report.load(kept.save(tmp_path / "run.json"))
    assert again == kept == copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept))
    assert hash(again) == hash(kept)
    found = again.sections[0].samples
    assert found.ids.values.tolist() == ["a", "b", "c", "d"]
    assert found.column("loss")[1] == math.inf
    assert found.decision.values.tolist() == ["cat", "dog", "cat", "dog"]
    assert (found.data, len(found)) == ("pets 2", 4)


@pytest.mark.parametrize(
    ("part", "change", "message"),
    [
        ("data", lambda text: "AAAA" + text[4:], "got bytes that do not unpack, expected zlib in base64"),
        ("data", lambda text: text[:-8], "got 0 bytes, expected 1 bytes"),
        ("data", lambda text: "ü", "got bytes that do not unpack"),
        ("digest", lambda text: "0" * 32, "got bytes that do not have the stored digest"),
        ("form", lambda text: "pickle", "got form 'pickle', expected one of range, bits"),
        ("form", lambda text: "text", "got a text that is not JSON"),
        ("form", lambda text: "numbers", "got 1 bytes of 'bool', expected 4 numbers"),
        ("count", lambda number: 9, "got 1 bytes of bits, expected 9 bits"),
        ("count", lambda number: -1, "got 1 bytes of bits, expected -1 bits"),
        ("size", lambda number: 0, "got 1 bytes or more, expected 0 bytes"),
        ("size", lambda number: -5, "got 1 bytes or more, expected -5 bytes"),
        ("size", lambda number: 10**30, "got bytes that do not unpack"),
    ],
)
def test_damaged_samples_are_refused_with_their_place(part, change, message):
    data = json.loads(report(right(1, 1, 0, 1)).to_json())
    packed = data["sections"][0]["samples"]["columns"][0]["values"]
    packed[part] = change(packed[part])
    with pytest.raises(
        StateError,
        match=r"run.json.sections\[0\].samples.columns\[0\].values cannot be read. PackedArray: (" + message + ")",
    ):
        Report.from_json(json.dumps(seal(data)), "run.json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"count": 10**15}, "a range that does not have the stored digest"),
        ({"data": "0 2"}, "a range that does not have the stored digest"),
        ({"data": "0"}, "got '0', expected a first number and a step"),
    ],
)
def test_a_damaged_range_is_refused_before_it_is_made(change, message):
    data = json.loads(report(right(1, 1, 0, 1)).to_json())
    data["sections"][0]["samples"]["ids"] |= change
    with pytest.raises(StateError, match=message):
        Report.from_json(json.dumps(seal(data)))


def test_a_range_beyond_int64_is_no_range():
    with pytest.raises(InputError, match="got 3 numbers from 9223372036854775807 by 1, expected numbers within int64"):
        PackedArray("range", "int64", 3, 0, _digest(f"{2**63 - 1} 1 3"), f"{2**63 - 1} 1")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def test_a_small_file_cannot_claim_the_memory():
    bomb = base64.b64encode(zlib.compress(bytes(50_000_000))).decode()
    with pytest.raises(InputError, match="got 101 bytes or more, expected 100 bytes"):
        PackedArray("bits", "bool", 800, 100, "0" * 32, bomb)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            Value("accuracy", 0.7, numerator="correct"),
            "Value 'accuracy': got 0.7, expected 0.75, the mean of 'correct'",
        ),
        (Value("x", 0.75, numerator="loss"), "column: got 'loss', expected one of the columns"),
        (
            Value("x", 0.5, numerator="correct", denominator="correct"),
            "got 0.5, expected 1.0, the mean of .* over that of",
        ),
        (Value("x", math.nan, numerator="correct"), "got nan, expected 0.75"),
    ],
)
def test_a_value_is_the_mean_of_its_column(value, message):
    with pytest.raises(ConfigError, match=message):
        Section("s", [value], samples=right(1, 1, 0, 1))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Value("x", 1, confidence_level=95),
            "Value.confidence_level: got 95.0, expected a number between 0 and 1. Pass 0.95 for 95 %.",
        ),
        (lambda: Value("x", 1, denominator="n"), "Value.denominator: got 'n' without a numerator"),
        (
            lambda: Section("s", [Value("x", 1, numerator="c")]),
            "got column 'c' of no samples, expected samples in the sect",
        ),
    ],
)
def test_values_that_cannot_be_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


def test_a_direction_is_true_false_or_none():
    with pytest.raises(InputError, match=r"Value.higher_is_better: got str 'up'"):
        Value("x", 1, higher_is_better="up")


def test_an_undefined_mean_goes_with_an_undefined_value():
    empty = Samples.pack([], {"correct": np.zeros(0, dtype=bool)})
    Section("s", [Value("accuracy", math.nan, numerator="correct")], samples=empty)
    infinite = Samples.pack(range(2), {"loss": [1.0, math.inf]})
    Section("s", [Value("loss", math.inf, numerator="loss")], samples=infinite)
    with pytest.raises(ConfigError, match="expected inf, the mean of 'loss'"):
        Section("s", [Value("loss", 3.0, numerator="loss")], samples=infinite)


def test_slices_know_their_samples_and_are_shown():
    part = Slice.of("odd", [Value("accuracy", 0.5, numerator="correct")], [False, True, True, False])
    whole = Report(
        "r",
        [
            Section(
                "s",
                [Value("accuracy", 0.75, numerator="correct")],
                samples=right(1, 1, 0, 1),
                slices=[part, Slice("b", 7)],
            )
        ],
    )
    assert Report.from_json(whole.to_json()) == whole
    assert part.count == 2
    assert "| odd | 2 | 0.5000 |\n| b | 7 | – |" in whole.to_markdown()


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (
            lambda: Section("s", slices=[Slice("a", 1)] * 2),
            ConfigError,
            "Section.slices: got 'a' 2 times, expected unique",
        ),
        (
            lambda: Slice("a", 1, [Value("x", 1), Value("x", 2)]),
            ConfigError,
            "Slice.values: got .*, expected unique names",
        ),
        (lambda: Slice("a", 3, members=PackedArray.of([True])), ShapeError, "got members that are not 3 true booleans"),
        (
            lambda: Section("s", samples=right(1, 0), slices=[Slice.of("a", [], [True])]),
            ShapeError,
            "Slice 'a': got 1 members, expected 2, one for each sample",
        ),
        (
            lambda: Section("s", samples=right(1, 0), slices=[Slice("a", 1, [Value("x", 1, numerator="correct")])]),
            ConfigError,
            "Slice 'a': got column 'correct' without members",
        ),
        (
            lambda: Section(
                "s", samples=right(1, 0), slices=[Slice.of("a", [Value("x", 1, numerator="correct")], [0, 1])]
            ),
            ConfigError,
            "Value 'x': got 1.0, expected 0.0, the mean of 'correct'",
        ),
    ],
)
def test_slices_that_do_not_fit_are_refused(make, error, message):
    with pytest.raises(error, match=message):
        make()


@given(st.permutations(range(12)))
def test_samples_are_aligned_in_any_order(order):
    a = Samples.pack(range(12), {}, target=np.arange(12) * 10)
    for ids in (order, [f"id {i}" for i in order]):
        first = (
            a
            if isinstance(ids[0], int)
            else Samples.pack([f"id {i}" for i in range(12)], {}, target=np.arange(12) * 10)
        )
        b = Samples.pack(ids, {}, target=np.array(order) * 10)
        position = align(first, b)
        assert [ids[i] for i in position] == first.ids.values.tolist()


@pytest.mark.parametrize(
    ("b", "why"),
    [
        (right(1, 0, 1), "1 sample is in the first only, 0 in the second only"),
        (Samples.pack(["0", "1", "2", "3"], {}), "ids are numbers in one and texts in the other"),
        (Samples.pack(range(4), {}, target=[0, 1, 2, 4]), "1 sample has another target, the first is 3"),
        (Samples.pack(range(4), {}, target=["0", "1", "2", "3"]), "4 samples have another target, the first is 0"),
        (right(1, 0, 1, 0, data="other"), "other data: 'this' and 'other'"),
    ],
)
def test_why_samples_cannot_be_paired(b, why):
    assert align(right(1, 1, 0, 1, target=[0, 1, 2, 3], data="this"), b) == why


def test_missing_targets_are_equal_targets():
    a = right(1, 0, target=[math.nan, 1.0])
    assert align(a, a).tolist() == [0, 1]
    assert is_known_to_be_the_same(a, a)
    assert not is_known_to_be_the_same(a, right(1, 0))
    assert is_known_to_be_the_same(right(1, data="d"), right(1, data="d"))
