"""Fragments of a table in files, counted by a function in a query of Daft.

python examples/engines/daft_fragments.py
"""

import daft
from _table import METRICS, OPTIONS, PATH, check

from assay.scoring import Partial, count, fragments_of, merge


@daft.func(return_dtype=daft.DataType.binary())
def counted(name: str) -> bytes:
    """The counts of a fragment."""
    return count(PATH, METRICS, [name], **OPTIONS).to_bytes()


frame = daft.from_pydict({"fragment": list(fragments_of(PATH))})
parts = frame.select(counted(frame["fragment"]).alias("part")).to_pydict()["part"]
check(merge(map(Partial.from_bytes, parts)).report(), PATH)
