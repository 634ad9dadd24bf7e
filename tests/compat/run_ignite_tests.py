"""Runs tests of Ignite itself on the drop-in names of its metrics: `python tests/compat/run_ignite_tests.py --share 1`.

The tests are those of the release that is installed. They are fetched with git, or lie in a checkout (`--repository`).
In a copy of them each import from `ignite.metrics` becomes one from `assay.compat.ignite.metrics`; nothing else is
changed. Their tests of several processes are left out.
"""

from __future__ import annotations

import sys

import ignite
from others_tests import OthersTests

IGNITE = OthersTests(
    repository="https://github.com/pytorch/ignite",
    tag=f"v{ignite.__version__}",
    root=".",
    folder="tests/ignite/metrics",
    families=["."],
    library="ignite",
    imports=r"ignite\.metrics",
    left_out="distrib|multinode|tpu|hvd|nccl",
)

if __name__ == "__main__":
    sys.exit(IGNITE.main(__doc__ or ""))
