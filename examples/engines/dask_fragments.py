"""Fragments of a table in files, counted by tasks of Dask.

python examples/engines/dask_fragments.py
"""

import dask
from _table import METRICS, OPTIONS, PATH, check

from assay.scoring import count, fragments_of, merge

tasks = [dask.delayed(count)(PATH, METRICS, [name], **OPTIONS) for name in fragments_of(PATH)]
check(merge(dask.compute(*tasks, scheduler="threads")).report(), PATH)
