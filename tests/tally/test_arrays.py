"""Arrays, Series and lists as tensors, or refused by name."""

import datetime

import numpy as np
import pytest
import torch

from assay import Accuracy, Mean
from assay.errors import DtypeError, InputError, ShapeError
from assay.tally.arrays import as_tensor, has_strings


class Memory:
    """What gives its memory alone, as arrays of JAX and CuPy do."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, **options):
        return self.tensor.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float32", "float64"])
def test_dtypes_of_arrays_stay_as_they_are(dtype):
    assert as_tensor(np.ones(2, dtype)).numpy().dtype == dtype


def test_memory_is_read_by_dlpack():
    memory = torch.tensor([1.0, 2.5], dtype=torch.bfloat16)
    assert as_tensor(Memory(memory)).data_ptr() == memory.data_ptr()
    assert float(Mean()(Memory(memory))) == 1.75
    assert float(Mean()(range(4))) == 1.5


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        (np.ma.array([1.0, 100.0], mask=[0, 1]), InputError, "1 missing value in MaskedArray"),
        ([1.0, None], InputError, "1 missing value in list, expected a value each. Drop"),
        ([[1, 2], [3]], ShapeError, "list with parts of several lengths"),
        (np.array([1, 2.0], object), DtypeError, r"ndarray of objects \(float, int\)"),
        ([2**70], DtypeError, r"list of objects \(int\), expected numbers of at most 64 bits.*dtype=int\)"),
        (np.array(["2020-01-01"], "M8[D]"), DtypeError, r"ndarray of datetime64\[D\].*such as seconds"),
        ([datetime.date(2020, 1, 1)], DtypeError, r"list of objects \(date\)"),
        (np.ones(2, np.longdouble), DtypeError, r"preds.astype\(float\)"),
        ({"a": 1}, ShapeError, "got dict, expected a tensor"),
    ],
)
def test_what_is_no_array_of_numbers_is_refused_by_name(values, error, message):
    with pytest.raises(error, match=message):
        Mean()(values)


def test_columns_of_pandas_without_values_are_refused():
    pandas = pytest.importorskip("pandas")
    for kind in ("Int64", "Float64", "boolean"):
        full, holes = pandas.Series([1, 0, 1], dtype=kind), pandas.Series([1, None, 1], dtype=kind)
        assert as_tensor(full).tolist() == [1, 0, 1]
        with pytest.raises(InputError, match="target: got 1 missing value in Series"):
            Accuracy()([1, 1, 1], holes)
    assert as_tensor(pandas.DataFrame({"a": [1.0, 2.0]})).shape == (2, 1)
    assert float(Accuracy()(*(pandas.Series(["a", "b"], dtype="category"),) * 2, labels=("a", "b"))) == 1


def test_columns_of_polars_and_arrow_without_values_are_refused():
    for name, make in (("polars", "Series"), ("pyarrow", "array")):
        column = getattr(pytest.importorskip(name), make)
        assert as_tensor(column([1, 0])).tolist() == [1, 0]
        with pytest.raises(InputError, match="1 missing value in "):
            Accuracy()(column([1, None]), [1, 0])


class CountedArray:
    """What converts itself to an array, and notes as which dtype."""

    def __init__(self, values):
        self.values, self.asked = np.array(values), []

    def __array__(self, dtype=None, copy=None):
        self.asked.append(dtype)
        return self.values.astype(dtype) if dtype is not None else self.values


@pytest.mark.parametrize(("values", "found"), [([0.5, 1.0], False), ([1, 2], False), (["a", "b"], True)])
def test_only_what_may_hold_strings_is_looked_at_one_by_one(values, found):
    given = CountedArray(values)
    assert has_strings(given) is found
    assert any(each is not None for each in given.asked) is found
