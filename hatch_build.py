"""Compile `assay.native` when assay is built, where there is a C compiler. Without one assay is pure Python."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HOME = Path("src/assay/native")
SOURCES = [HOME / name for name in ("bins.c", "edits.c", "labels.c", "matching.c", "sums.c", "weights.c")]
LIBRARY = HOME / "_native.so"
# No contraction to fused multiply-adds and no reassociation: the code is exact only as written.
FLAGS = [
    "-O3",
    "-std=c11",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
]


class CompileNative(BuildHookInterface):
    """Build `_native.so` and put it into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or say why not and go on without."""
        if self.target_name != "wheel":
            return
        root = Path(self.root)
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            self.app.display_warning("assay: no C compiler, so everything runs in torch (slower, the same values)")
            return
        command = [compiler, *FLAGS, *(str(root / source) for source in SOURCES), "-o", str(root / LIBRARY), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            self.app.display_warning(f"assay: {compiler} failed, so everything runs in torch:\n{done.stderr}")
            return
        build_data["artifacts"].append(str(LIBRARY))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
