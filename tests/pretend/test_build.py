"""The compiled engine in the cache."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from assay.pretend.native_engine import build


@pytest.mark.skipif(not build.compiler(), reason="there is no C++ compiler")
@pytest.mark.exhaustive
def test_a_library_that_was_cut_short_is_compiled_again(tmp_path):
    code = (
        "from assay.pretend.native_engine import build\n"
        "from pathlib import Path\n"
        "import shutil, torch\n"
        f"library = Path({str(tmp_path)!r}) / f'engine-{{build._key()}}.so'\n"
        "library.write_bytes(b'cut short')\n"
        "build._compile_into = lambda folder: made.append(1) or shutil.copy(kept, folder / 'engine.so')\n"
        f"made, kept = [], {str(kept())!r}\n"
        "print(build.load().current_device(), made)"
    )
    environment = os.environ | {"ASSAY_CACHE": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "0 [1]\n", done.stderr


def kept() -> str:
    """The engine that other tests use."""
    folder = build.cache_folder()
    assert folder is not None
    build.load()
    return str(folder / f"engine-{build._key()}.so")
