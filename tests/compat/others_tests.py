"""Tests of another library, run on the drop-in names: what the scripts for TorchMetrics and Ignite share."""

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
"""Chooses a share of the tests by a hash of their names."""
import hashlib
import os
import re

SHARE, SEED, LEFT_OUT = float(os.environ["SHARE"]), os.environ["SEED"], os.environ["LEFT_OUT"]


def _is_chosen(item):
    digest = hashlib.md5((SEED + item.nodeid).encode()).hexdigest()[:8]
    return not re.search(LEFT_OUT, item.name) and int(digest, 16) < SHARE * 2**32


def pytest_collection_modifyitems(items):
    items[:] = filter(_is_chosen, items)
'''


@dataclass(frozen=True)
class OthersTests:
    """The tests of a library.

    Args:
        repository: from which they are fetched with git.
        tag: of the release that is installed.
        root: from which the tests import each other, in the repository.
        folder: of the families of tests.
        families: files and folders in it that are run when none is named.
        library: the library, whose imports at the head of a line are changed.
        imports: a regular expression of what of it is imported from `assay.compat` instead.
        left_out: a regular expression of names of tests that are not run: of several processes and of scripting.
        modules: source of modules in the place of packages that the tests import.
    """

    repository: str
    tag: str
    root: str
    folder: str
    families: Sequence[str]
    library: str
    imports: str
    left_out: str
    modules: dict[str, str] = field(default_factory=dict)

    def fetched(self, folder: Path) -> Path:
        """The repository."""
        command = ["git", "clone", "--quiet", "--depth", "1", "--branch", self.tag, self.repository, str(folder)]
        subprocess.run(command, check=True)
        return folder

    def on_drop_in_names(self, repository: Path, folder: Path) -> None:
        """Copy the tests, and change their imports."""
        shutil.copytree(repository / "tests", folder / "tests")
        for path in folder.rglob("test_*.py"):
            text = path.read_text("utf-8")
            text = re.sub(rf"^from (?={self.imports}[. ])", "from assay.compat.", text, flags=re.MULTILINE)
            text = re.sub(
                rf"^import {self.library}$", f"from assay.compat import {self.library}", text, flags=re.MULTILINE
            )
            path.write_text(text, "utf-8")
        (folder / "share_of_tests.py").write_text(PLUGIN, "utf-8")
        for name, source in self.modules.items():
            (folder / f"{name}.py").write_text(source, "utf-8")

    def run(self, folder: Path, families: Sequence[str], share: float, seed: str) -> int:
        """Run the tests of these families, and return pytest's exit code."""
        home, root = folder / self.folder, str(folder)
        source = Path(__file__).parents[2] / "src"
        path = os.pathsep.join([str(folder / self.root), root, str(source), os.environ.get("PYTHONPATH", "")])
        options = ["-q", "-p", "share_of_tests", "-p", "no:cacheprovider", "-W", "ignore", "--tb=line", "-rfE"]
        options += ["--continue-on-collection-errors"]  # of files whose references are not installed
        options += [f"--rootdir={root}", f"--confcutdir={root}"]
        environment = os.environ | {"PYTHONPATH": path, "SHARE": str(share), "SEED": seed, "LEFT_OUT": self.left_out}
        command = [sys.executable, "-m", "pytest", *options, *families]
        return subprocess.run(command, cwd=home, env=environment, check=False).returncode

    def main(self, description: str) -> int:
        """Read the options, and run."""
        parser = argparse.ArgumentParser(description=description.partition("\n")[0])
        parser.add_argument("families", nargs="*", default=self.families, help=f"folders or files in {self.folder}")
        parser.add_argument("--repository", type=Path, help="a checkout of the library, where it is here already")
        parser.add_argument("--share", type=float, default=0.05, help="of the tests, between 0 and 1")
        parser.add_argument("--seed", default="", help="which share it is: any text")
        options = parser.parse_args()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            self.on_drop_in_names(options.repository or self.fetched(folder / self.library), folder / "run")
            return self.run(folder / "run", list(options.families), options.share, options.seed)
