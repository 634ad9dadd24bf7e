"""Runs TorchMetrics' own unit tests on the drop-in names: `python tests/compat/run_torchmetrics_tests.py --share 0.05`.

The tests are those of the release that is installed. They are fetched with git, or lie in a folder (`--tests`). In a
copy of them each `import torchmetrics` becomes one of `assay.compat.torchmetrics`; nothing else is changed. Their tests
of several processes and of scripting are left out. A share of the others is run, the same one each time.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import torchmetrics

REPOSITORY = "https://github.com/Lightning-AI/torchmetrics"
FAMILIES = ("bases/test_aggregation.py", "classification", "clustering", "nominal", "regression", "retrieval")
PLUGIN = '''
"""Chooses a share of the tests by a hash of their names."""
import hashlib
import os

SHARE = float(os.environ["SHARE"])


def _is_chosen(item):
    several = "[True" in item.name or "ddp" in item.name or "script" in item.name
    return not several and int(hashlib.md5(item.nodeid.encode()).hexdigest()[:8], 16) < SHARE * 2**32


def pytest_collection_modifyitems(items):
    items[:] = filter(_is_chosen, items)
'''
CACHIER = "def cachier(**options):\n    return lambda function: function\n"
"""In the place of a package that keeps values of references between runs."""


def fetched(folder: Path) -> Path:
    """The tests of the release that is installed."""
    branch = f"v{torchmetrics.__version__}"
    command = ["git", "clone", "--quiet", "--depth", "1", "--branch", branch, REPOSITORY, str(folder)]
    subprocess.run(command, check=True)
    return folder / "tests"


def on_drop_in_names(tests: Path, folder: Path) -> None:
    """Copy tests, and change their imports."""
    shutil.copytree(tests / "unittests", folder / "unittests")
    for path in folder.rglob("test_*.py"):
        text = path.read_text("utf-8")
        text = re.sub(r"^from torchmetrics(?=[. ])", "from assay.compat.torchmetrics", text, flags=re.MULTILINE)
        text = re.sub(r"^import torchmetrics$", "from assay.compat import torchmetrics", text, flags=re.MULTILINE)
        path.write_text(text, "utf-8")
    (folder / "share_of_tests.py").write_text(PLUGIN, "utf-8")
    if importlib.util.find_spec("cachier") is None:
        (folder / "cachier.py").write_text(CACHIER, "utf-8")


def run(folder: Path, families: list[str], share: float) -> int:
    """Run the tests of these families, and return pytest's exit code."""
    source = Path(__file__).parents[2] / "src"
    path = os.pathsep.join([str(folder), str(source), os.environ.get("PYTHONPATH", "")])
    options = ["-q", "-p", "share_of_tests", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", "-rfE"]
    options += ["--continue-on-collection-errors"]  # of files whose references are not installed
    targets = [f"unittests/{family}" for family in families]
    environment = os.environ | {"PYTHONPATH": path, "SHARE": str(share)}
    command = [sys.executable, "-m", "pytest", *options, *targets]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


def main() -> int:
    """Read the options, and run."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", default=FAMILIES, help="folders or files in tests/unittests")
    parser.add_argument("--tests", type=Path, help="the folder `tests` of TorchMetrics, where it is here already")
    parser.add_argument("--share", type=float, default=0.05, help="of the tests, between 0 and 1")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        on_drop_in_names(options.tests or fetched(folder / "torchmetrics"), folder / "run")
        return run(folder / "run", list(options.families), options.share)


if __name__ == "__main__":
    sys.exit(main())
