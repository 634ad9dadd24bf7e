"""Parts of reports as data frames of pandas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assay.errors import MissingDependencyError


def data_frame(rows: Mapping[str, Any] | Iterable[Sequence[Any]], columns: Sequence[str], purpose: str) -> Any:
    """A DataFrame of pandas, which is imported here.

    Args:
        rows: the rows, or the columns by name.
        columns: the names of the columns.
        purpose: the method that was called, for the error.

    Raises:
        MissingDependencyError: pandas is not installed.
    """
    try:
        from pandas import DataFrame
    except ImportError as error:
        raise MissingDependencyError("pandas", extra="pandas", purpose=purpose) from error
    return DataFrame(rows if isinstance(rows, Mapping) else list(rows), columns=list(columns))
