"""pyarrow, imported when a table is read, and what it raises as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from assay.errors import AssayError, MissingDependencyError, StateError, describe


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


@contextmanager
def reading(where: str, expected: str = "a table", do: str = "Write it again, all rows alike") -> Iterator[None]:
    """Report an error inside as a table that cannot be read.

    pyarrow raises its own errors, those of the system, of Unicode and of values for files that are damaged.

    Raises:
        StateError: something inside raised; errors of assay pass.
    """
    try:
        yield
    except AssayError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise StateError(
            describe(where, f"what cannot be read ({type(error).__name__}: {reason})", expected, do)
        ) from error
