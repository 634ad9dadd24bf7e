"""Which operators have a kernel on Intel GPUs, and which torch itself runs on the CPU there, release by release.

Reads a clone of intel/torch-xpu-ops and writes `src/assay/devices/known/kernels_xpu.toml`:

    python -m benchmarks.calibration.kernels_of_xpu path/of/the/clone
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from pathlib import Path
from textwrap import fill
from typing import Any

import yaml

RELEASES = ("2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14")
OUT = Path(__file__).parents[2] / "src/assay/devices/known/kernels_xpu.toml"
HEAD = """\
# Which operators Intel GPUs have, release by release. Written by `python -m benchmarks.calibration.kernels_of_xpu` from
# intel/torch-xpu-ops: `yaml/native/native_functions.yaml` and `XPUFallback` of each branch `release/*`. Not edited by
# hand. From 2.14 on, the list of kernels is in torch's own native_functions.yaml.
checked = {today}
source = "intel/torch-xpu-ops, branches {branches}"
"""


def main(clone: Path) -> None:
    """Write the facts."""
    kernels = {release: found for release in RELEASES if (found := kernels_of(clone, release))}
    on_cpu = {release: on_cpu_of(clone, release) for release in RELEASES}
    branches = ", ".join(f"release/{release}" for release in RELEASES)
    head = HEAD.format(today=datetime.date.today(), branches=branches)
    OUT.write_text("\n".join([head, *tables("kernels", kernels), *tables("on_cpu", on_cpu)]), encoding="utf-8")


def kernels_of(clone: Path, release: str) -> set[str]:
    """The overloads with a kernel for dense tensors, of their own or through another overload."""
    named = entries(_show(clone, release, "yaml/native/native_functions.yaml") or "[]")
    return {
        name
        for name, entry in named.items()
        if "XPU" in keys(named, name) or "ufunc_inner_loop" in {*entry, *named.get(_worker(entry), {})}
    }


def entries(text: str) -> dict[str, dict[str, Any]]:
    """The operators of a ``native_functions.yaml`` by overload."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {entry["func"].partition("(")[0]: entry for entry in yaml.load(text, Loader=loader)}


def keys(named: dict[str, dict[str, Any]], name: str) -> set[str]:
    """The dispatch keys of an overload and of the one that does its work."""
    both = (named[name], named.get(_worker(named[name]), {}))
    return {key.strip() for each in both for together in each.get("dispatch", {}) for key in together.split(",")}


def _worker(entry: dict[str, Any]) -> str:
    return str(entry.get("structured_delegate", ""))


def on_cpu_of(clone: Path, release: str) -> set[str]:
    """The overloads of the list of fallbacks."""
    text = next(
        filter(None, (_show(clone, release, f"src/ATen/native/xpu/XPUFallback.{end}") for end in ("template", "cpp")))
    )
    return set(re.findall(r'"([\w.]+)"', text.partition("fallback_list = {")[2].partition("};")[0]))


def _show(clone: Path, release: str, path: str) -> str:
    command = ["git", "-C", str(clone), "show", f"release/{release}:{path}"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def tables(topic: str, by_release: dict[str, set[str]]) -> list[str]:
    """One table for the operators that the same releases have."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in sorted(set().union(*by_release.values())):
        groups.setdefault(tuple(each for each, names in by_release.items() if name in names), []).append(name)
    return [
        _table(topic, releases, names) for releases, names in sorted(groups.items(), key=lambda item: -len(item[1]))
    ]


def _table(topic: str, releases: tuple[str, ...], names: list[str]) -> str:
    listed = ", ".join(f'"{release}"' for release in releases)
    return "\n".join([f"[[{topic}]]", f"releases = [{listed}]", operators(names), ""])


def operators(names: list[str]) -> str:
    """Their names as one text, which is read ten times as fast as a list."""
    return f'operators = """\n{fill(" ".join(names), 118, break_long_words=False, break_on_hyphens=False)}\n"""'


if __name__ == "__main__":
    main(Path(sys.argv[1]))
