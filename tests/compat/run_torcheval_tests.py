"""Runs tests of TorchEval itself on the drop-in names: `python tests/compat/run_torcheval_tests.py --share 1`.

The tests are those of the release that is installed. They are fetched with git, or lie in a checkout (`--repository`).
In a copy of them each import from `torcheval.metrics` becomes one from `assay.compat.torcheval.metrics`. Where a test
names the states of TorchEval's class, their tester gets the name of the one state here; it still compares the states of
copies, of loaded and of merged metrics. Only with `--processes`, it starts four processes for each metric.
"""

from __future__ import annotations

import sys

from others_tests import OthersTests

RELEASE = "f1bc22fc67ec2c77ee519aa4af8079f4fdaa41bb"
"""The commit of release 0.0.7, which has no tag."""

PLUGIN = """

from torcheval.utils.test_utils.metric_class_tester import MetricClassTester

from assay.compat.for_torcheval.metric import COUNTS, CompatibleTorchEval

RUN = MetricClassTester.run_class_implementation_tests


@functools.wraps(RUN)
def _run(self, metric, state_names, *args, **kwargs):
    RUN(self, metric, {COUNTS} if isinstance(metric, CompatibleTorchEval) else state_names, *args, **kwargs)


MetricClassTester.run_class_implementation_tests = _run
if not PROCESSES:
    MetricClassTester._test_sync_and_compute = lambda self: None
"""

TORCHEVAL = OthersTests(
    repository="https://github.com/pytorch/torcheval",
    tag=RELEASE,
    root=".",
    folder="tests/metrics",
    families=(
        *("aggregation", "classification", "functional", "image/test_psnr.py", "ranking", "regression"),
        *("text", "window", "test_toolkit.py"),
    ),
    library="torcheval",
    imports=r"torcheval\.metrics",
    left_out="_sync",
    plugin=PLUGIN,
)

if __name__ == "__main__":
    sys.exit(TORCHEVAL.main(__doc__ or ""))
