"""Runs TorchMetrics' own unit tests on the drop-in names: `python tests/compat/run_torchmetrics_tests.py --share 0.05`.

The tests are those of the release that is installed. They are fetched with git, or lie in a checkout (`--repository`).
In a copy of them each `import torchmetrics` becomes one of `assay.compat.torchmetrics`; nothing else is changed. A
share of them is run; a seed names the share. With `--processes`, it is one of those of several processes.
"""

from __future__ import annotations

import importlib.util
import sys

import torchmetrics
from others_tests import OthersTests

FAMILIES = (
    *("classification", "clustering", "nominal", "regression", "retrieval", "text"),
    *("audio", "detection", "image", "multimodal", "segmentation", "shape"),
)
"""Those of whose names assay counts some; the others are TorchMetrics' own."""

WRAPPERS = ("bootstrapping", "classwise", "minmax", "multioutput", "multitask", "running", "tracker", "transformations")
BASES = ("aggregation", "collections", "composition", "ddp", "hashing", "metric", "saving_loading")
CACHIER = "def cachier(**options):\n    return lambda function: function\n"
"""In the place of a package that keeps values of references between runs."""

TORCHMETRICS = OthersTests(
    repository="https://github.com/Lightning-AI/torchmetrics",
    tag=f"v{torchmetrics.__version__}",
    root="tests",
    folder="tests/unittests",
    families=(
        *FAMILIES,
        *(f"wrappers/test_{name}.py" for name in WRAPPERS),
        *(f"bases/test_{name}.py" for name in BASES),
    ),
    library="torchmetrics",
    imports="torchmetrics",
    mark="DDP",
    modules={} if importlib.util.find_spec("cachier") else {"cachier": CACHIER},
)

if __name__ == "__main__":
    sys.exit(TORCHMETRICS.main(__doc__ or ""))
