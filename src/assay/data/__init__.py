"""Data in files and folders, as `assay.evaluate` and `assay.score` take them; the command line and Python use the same.

- `files`: a path becomes `Data`, by what its name ends in; the formats are listed there.
- `options`: what a caller says of a file, and what a model takes of it.
- `columns`: the data set that every format becomes; `column_roles` and `labels`: which column is what, and its values.
- `arrays`, `images`, `table_data`, `tokens`: a module a format.
- `tables/`: tables as pyarrow reads them, of any number of files: fragments, types, and what tells their content apart.
"""

from __future__ import annotations

from assay.data.columns import Data
from assay.data.files import open_path
from assay.data.options import DataOptions

__all__ = ["Data", "DataOptions", "open_path"]
