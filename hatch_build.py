"""Compile `assay.native` when assay is built, where there is a C compiler. Without one assay is pure Python."""

from __future__ import annotations

import os
import runpy
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

COMPILATION = Path("src/assay/native/compilation.py")


class CompileNative(BuildHookInterface):
    """Build `_native.so` and put it into the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, or say why not and go on without."""
        if self.target_name != "wheel":
            return
        compilation = runpy.run_path(str(Path(self.root) / COMPILATION))
        compiler = shutil.which(os.environ.get("CC", "cc"))
        if compiler is None:
            self.app.display_info("assay: no C compiler, so everything runs in torch (slower, the same values)")
            return
        done = subprocess.run(compilation["command"](compiler), capture_output=True, text=True, check=False)
        if done.returncode:
            self.app.display_warning(f"assay: {compiler} failed, so everything runs in torch:\n{done.stderr}")
            return
        build_data["artifacts"].append(str(COMPILATION.with_name(compilation["LIBRARY"].name)))
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
