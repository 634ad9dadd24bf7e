"""Which operators older releases of torch lacked on mps, from the lists that their wheels carry.

Reads the `torchgen` folders of releases, from the oldest on, and writes `src/assay/devices/known/lacked_mps.toml`. An
operator that a release lacked, and the next one that is read had, was lacked until then as far as that is known:

    python -m benchmarks.calibration.kernels_of_mps 2.6=path/of/torchgen 2.9=path/of/torchgen 2.13=path/of/torchgen
"""

from __future__ import annotations

import datetime
import sys
from itertools import pairwise
from pathlib import Path

from assay.devices.capabilities import fact_file
from benchmarks.calibration.kernels_of_xpu import entries, keys, operators

OUT = Path(__file__).parents[2] / "src/assay/devices/known/lacked_mps.toml"
HEAD = """\
# Which operators older releases of torch had, but not on Apple GPUs. Written by
# `python -m benchmarks.calibration.kernels_of_mps` from native_functions.yaml in the wheels of {releases}.
# Not edited by hand. Releases between two of them were not read: what one lacked counts as lacked in it and before.
checked = {today}
source = "native_functions.yaml in torch's wheels"
"""
IN_PYTHON = {"2.13": {"linalg_lu_solve", "linalg_lu_solve.out"}}
"""Kernels that Python registers, which the list does not name: torch/_refs/linalg/__init__.py."""


def main(folders: dict[str, Path]) -> None:
    """Write the facts."""
    lists = {release: folder / "packaged/ATen/native/native_functions.yaml" for release, folder in folders.items()}
    runs = {release: running(file.read_text("utf-8"), release) for release, file in lists.items()}
    on_cpu = {name.partition(".")[0] for name in fact_file("operators_mps")["on_cpu"]["without_kernel"]}
    tables = [
        _table(
            older, [name for name in sorted(runs[newer][0] & runs[older][1]) if name.partition(".")[0] not in on_cpu]
        )
        for older, newer in pairwise(runs)
    ]
    head = HEAD.format(today=datetime.date.today(), releases=", ".join(folders))
    OUT.write_text("\n".join([head, *tables]), encoding="utf-8")


def running(text: str, release: str) -> tuple[set[str], set[str]]:
    """The overloads that run on mps, as there is a kernel or they are made of others, and those that do not."""
    named = entries(text)
    made = {name for name in named if not keys(named, name) or any("Composite" in key for key in keys(named, name))}
    runs = made | {name for name in named if "MPS" in keys(named, name)} | IN_PYTHON.get(release, set())
    return runs, set(named) - runs


def _table(release: str, names: list[str]) -> str:
    major, minor = release.split(".")
    until = f'until = "{major}.{int(minor) + 1}"'
    return "\n".join(["[[lacked]]", 'device = "mps"', until, operators(names), ""])


if __name__ == "__main__":
    main({release: Path(folder) for release, _, folder in (each.partition("=") for each in sys.argv[1:])})
