"""Rows in the order of their columns in compiled code, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from assay.native.library import MISSING, library
from assay.native.rankings import order_rows

pytestmark = pytest.mark.skipif(library() is None, reason=MISSING)

ROWS = (0, 1, 2, 47, 48, 300, 2047, 2048, 5000)
"""Rows that are tied are sorted by insertion, or by tables of two sizes."""


@pytest.mark.parametrize("values", [2, 5, 300, 2**63])
@pytest.mark.parametrize(
    "dtypes",
    [
        (np.uint8,),
        (np.int32, np.int8),
        (np.int32, np.uint8, np.int64),
        (np.int16, *[np.int32] * 2, np.uint32),
        (np.int64, *[np.int32] * 5, np.uint64, np.uint16),
    ],
)
def test_rows_are_sorted_as_lexsort_does(dtypes: tuple[type, ...], values: int) -> None:
    random = np.random.default_rng(0)
    for rows in ROWS:
        drawn = random.integers(-(values // 2), values - values // 2, (len(dtypes), rows))
        keys = [key.astype(dtype) for key, dtype in zip(drawn, dtypes, strict=True)]
        assert np.array_equal(order_rows(keys), np.lexsort(keys))


def test_columns_of_a_table_are_keys() -> None:
    table = np.random.default_rng(0).integers(-3, 3, (500, 4))
    for dtype in (np.int8, np.int32, np.int64):
        columns = table.astype(dtype).T
        for keys in (columns, columns[:, ::-1], columns[::2, ::3]):
            assert np.array_equal(order_rows(list(keys)), np.lexsort(keys))
