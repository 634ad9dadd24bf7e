"""Tests of another library, run on the drop-in names: what the scripts for TorchMetrics, Ignite and TorchEval share."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

PLUGIN = '''
"""Chooses a share of the tests by a hash of their names, and counts apart those that run none of assay's counting."""
import functools
import hashlib
import os
import re
from collections import Counter

import pytest
import torch

from assay.meter import Meter
from assay.meter.prepared_values import PreparedValue

SHARE, SEED, LEFT_OUT = float(os.environ["SHARE"]), os.environ["SEED"], os.environ["LEFT_OUT"]
MARK, PROCESSES = os.environ["MARK"], os.environ["PROCESSES"] == "1"
COUNTED, OUTCOMES, RUNNING = set(), Counter(), [""]


def _noting(method):
    @functools.wraps(method)
    def noted(*args, **kwargs):
        COUNTED.add(RUNNING[0])
        return method(*args, **kwargs)

    return noted


for name in ("update", "forward", "compute", "values_of", "merge", "load_state_dict"):
    setattr(Meter, name, _noting(getattr(Meter, name)))
for name in ("__call__", "quotient"):
    setattr(PreparedValue, name, _noting(getattr(PreparedValue, name)))


def _in_a_process(function, *args):
    """Call it in another process; whether assay counted."""
    RUNNING[0] = ""
    COUNTED.clear()
    function(*args)
    return bool(COUNTED)


def _watch(pool):
    """Note whether assay counts in the processes of a pool."""
    starmap = pool.starmap

    def watched(function, arguments):
        if any(starmap(_in_a_process, [(function, *each) for each in arguments])):
            COUNTED.add(RUNNING[0])

    pool.starmap = watched
    pool.map = lambda function, arguments: watched(function, [(each,) for each in arguments])


def pytest_collection_finish(session):
    if hasattr(pytest, "pool"):
        _watch(pytest.pool)


def _is_chosen(item):
    digest = hashlib.md5((SEED + item.nodeid).encode()).hexdigest()[:8]
    of_several = bool(MARK) and item.get_closest_marker(MARK) is not None
    is_left_out = of_several or re.search(LEFT_OUT, item.name) is not None
    wanted = (of_several or not MARK) if PROCESSES else not is_left_out
    return wanted and int(digest, 16) < SHARE * 2**32


def pytest_collection_modifyitems(items):
    items[:] = filter(_is_chosen, items)


def pytest_runtest_logstart(nodeid, location):
    RUNNING[0] = nodeid


def pytest_runtest_logfinish(nodeid, location):
    torch.set_default_dtype(torch.float32)  # a test that failed leaves another one


def pytest_runtest_logreport(report):
    if report.when == "call" or (report.when == "setup" and not report.passed):
        OUTCOMES[report.nodeid in COUNTED, report.outcome] += 1


def pytest_terminal_summary(terminalreporter):
    for is_counted, title in ((True, "count with assay"), (False, "run no line of assay's counting")):
        found = {outcome: n for (each, outcome), n in sorted(OUTCOMES.items()) if each == is_counted}
        terminalreporter.write_line(f"Tests that {title}: " + ", ".join(f"{n} {each}" for each, n in found.items()))
    for nodeid in sorted(COUNTED & {each.nodeid for each in terminalreporter.stats.get("failed", [])}):
        terminalreporter.write_line(f"failed with assay: {nodeid}")
'''


@dataclass(frozen=True)
class OthersTests:
    """The tests of a library.

    Args:
        repository: from which they are fetched with git.
        tag: of the release that is installed, or its commit.
        root: from which the tests import each other, in the repository.
        folder: of the families of tests.
        families: files and folders in it that are run when none is named.
        library: the library, whose imports at the head of a line are changed.
        imports: a regular expression of what of it is imported from `assay.compat` instead.
        left_out: a regular expression of names of tests of several processes.
        mark: of pytest, that tests of several processes have.
        modules: source of modules in the place of packages that the tests import.
        plugin: source that is added to the plugin of pytest.
    """

    repository: str
    tag: str
    root: str
    folder: str
    families: Sequence[str]
    library: str
    imports: str
    left_out: str = "$^"
    mark: str = ""
    modules: dict[str, str] = field(default_factory=dict)
    plugin: str = ""

    def fetched(self, folder: Path) -> Path:
        """The repository."""
        fetch = ["fetch", "--quiet", "--depth", "1", self.repository, self.tag]
        folder.mkdir(parents=True)
        for command in (["init", "--quiet"], fetch, ["checkout", "--quiet", "FETCH_HEAD"]):
            subprocess.run(["git", *command], cwd=folder, check=True)
        return folder

    def copied(self, repository: Path, folder: Path, is_original: bool, data: Path | None) -> None:
        """Copy the tests and their data, and change their imports; not with `is_original`."""
        shutil.copytree(repository / "tests", folder / "tests")
        if data is not None:
            shutil.copytree(data, folder / "tests" / "_data")
        for path in () if is_original else folder.rglob("test_*.py"):
            text = path.read_text("utf-8")
            text = re.sub(rf"^from (?={self.imports}[. ])", "from assay.compat.", text, flags=re.MULTILINE)
            text = re.sub(
                rf"^import {self.library}$", f"from assay.compat import {self.library}", text, flags=re.MULTILINE
            )
            path.write_text(text, "utf-8")
        (folder / "share_of_tests.py").write_text(PLUGIN + self.plugin, "utf-8")
        for name, source in self.modules.items():
            (folder / f"{name}.py").write_text(source, "utf-8")

    def run(self, folder: Path, families: Sequence[str], share: float, seed: str, processes: bool) -> int:
        """Run the tests of these families, and return pytest's exit code."""
        home, root = folder / self.folder, str(folder)
        source = Path(__file__).parents[2] / "src"
        path = os.pathsep.join([str(folder / self.root), root, str(source), os.environ.get("PYTHONPATH", "")])
        options = ["-q", "-p", "share_of_tests", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", "-rfE"]
        options += ["--continue-on-collection-errors"]  # of files whose references are not installed
        options += [f"--rootdir={root}", f"--confcutdir={root}"]
        environment = os.environ | {"PYTHONPATH": path, "SHARE": str(share), "SEED": seed}
        environment |= {"LEFT_OUT": self.left_out, "MARK": self.mark, "PROCESSES": str(int(processes))}
        environment |= {"USE_PYTEST_POOL": str(int(processes))}  # of TorchMetrics' tests
        command = [sys.executable, "-m", "pytest", *options, *families]
        return subprocess.run(command, cwd=home, env=environment, check=False).returncode

    def main(self, description: str) -> int:
        """Read the options, and run."""
        parser = argparse.ArgumentParser(description=description.partition("\n")[0])
        parser.add_argument("families", nargs="*", default=self.families, help=f"folders or files in {self.folder}")
        parser.add_argument("--repository", type=Path, help="a checkout of the library, where it is here already")
        parser.add_argument("--share", type=float, default=0.05, help="of the tests, between 0 and 1")
        parser.add_argument("--original", action="store_true", help="leave the imports: tests of the library itself")
        parser.add_argument("--processes", action="store_true", help="run the tests of several processes")
        parser.add_argument("--data", type=Path, help="a folder with the data of the tests, which their authors serve")
        parser.add_argument("--seed", default="", help="which share it is: any text")
        options = parser.parse_args()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            repository = options.repository or self.fetched(folder / self.library)
            self.copied(repository, folder / "run", options.original, options.data)
            families, processes = list(options.families), options.processes
            return self.run(folder / "run", families, options.share, options.seed, processes)
