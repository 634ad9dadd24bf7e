"""pyarrow, imported when a table is read, and what it raises as one line."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from assay import _atomic
from assay.errors import MissingDependencyError


def arrow() -> Any:
    """The package with the parts of it that are used here."""
    try:
        import pyarrow
        import pyarrow.compute
        import pyarrow.csv
        import pyarrow.dataset
        import pyarrow.fs
        import pyarrow.json
        import pyarrow.parquet
        import pyarrow.types
    except ImportError as error:
        raise MissingDependencyError("pyarrow", extra="tables", purpose="Parquet, Arrow, CSV and JSON lines") from error
    return pyarrow


def reading(
    where: str,
    expected: str = "a table",
    do: str = "Write it again: it may be cut short, or its rows have different columns",
) -> AbstractContextManager[None]:
    """Report an error inside, such as one of pyarrow, as a table that cannot be read."""
    return _atomic.reading(where, expected, do, "what cannot be read")
