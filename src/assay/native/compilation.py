"""How the library is compiled, and from which sources. `hatch_build.py` reads it where assay is not installed yet.

Run as a program, it compiles the library of a checkout again.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

HOME = Path(__file__).parent
LIBRARY = HOME / "_native.so"
# No contraction to fused multiply-adds and no reassociation: the code is exact only as written.
FLAGS = (
    "-O3",
    "-std=c11",
    "-fPIC",
    "-shared",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-Wno-psabi",
)


def digest() -> str:
    """That of the sources: a library holds the one of those that it was compiled from, in `assay_sources`."""
    files = sorted((*HOME.glob("*.c"), *HOME.glob("*.h")))
    return hashlib.sha256(b"".join(file.name.encode() + file.read_bytes() for file in files)).hexdigest()


def command(compiler: str) -> list[str]:
    """What compiles the library."""
    sources = (str(source) for source in sorted(HOME.glob("*.c")))
    return [compiler, *FLAGS, f'-DASSAY_SOURCES="{digest()}"', *sources, "-o", str(LIBRARY), "-lm"]


if __name__ == "__main__":
    subprocess.run(command(os.environ.get("CC", "cc")), check=True)
