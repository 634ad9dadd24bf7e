"""Which operators have a kernel on devices that an adapter brings to torch, as the adapters' own lists say.

Reads clones of Ascend/op-plugin and Ascend/pytorch (``npu``), Cambricon/torch_mlu (``mlu``), MooreThreads/torch_musa
(``musa``), HabanaAI/gaudi-pytorch-bridge (``hpu``) and pytorch/xla (``xla``), whose folders are all in one, and writes
`src/assay/devices/known/kernels_*.toml`:

    python -m benchmarks.calibration.kernels_of_adapters path/of/the/folder
"""

from __future__ import annotations

import datetime
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from assay.devices.operators.overloads import overloads
from benchmarks.calibration.kernels_of_xpu import tables

KNOWN = Path(__file__).parents[2] / "src/assay/devices/known"
RELEASES = ("2.6", "2.7", "2.8", "2.9", "2.10", "2.11", "2.12", "2.13", "2.14")
NEWEST = "2.15"
HEAD = """\
# Which operators {what} have a kernel of, by torch's release for which the adapter is made.
# Written by `python -m benchmarks.calibration.kernels_of_adapters`, and not edited by hand.
checked = {today}
source = "{source}"
"""


def main(clones: Path) -> None:
    """Write the facts of every kind."""
    for kind, (what, read, sources) in KINDS.items():
        clones_of = {repository: clones / repository for repository in sources}
        commits = ", ".join(
            f"{name.replace('+', '/')} at {_commit(clones_of[name])} ({path})" for name, path in sources.items()
        )
        head = HEAD.format(what=what, today=datetime.date.today(), source=commits)
        text = "\n".join([head, *tables("kernels", _of_torch(read(*clones_of.values())))])
        (KNOWN / f"kernels_{kind}.toml").write_text(text, encoding="utf-8")


def _of_torch(by_release: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without operators that only the adapter has, and that the installed torch has no more."""
    return {
        release: {name for name in names if f"aten::{name}" in overloads()} for release, names in by_release.items()
    }


def npu(op_plugin: Path, adapter: Path) -> dict[str, set[str]]:
    """`acl_op` and `op_api` say for which releases op-plugin has an operator; the adapter itself has a few more."""
    listed = _yaml(op_plugin, "op_plugin/config/op_plugin_functions.yaml")
    own = {_name(each) for each in _yaml(adapter, "torch_npu/csrc/aten/npu_native_functions.yaml")["supported"]}
    entries = [entry for topic in ("official", "symint") for entry in listed[topic]]
    return {
        release: own | {_name(entry) for entry in entries if any(_holds(entry.get(way), release) for way in WAYS)}
        for release in RELEASES
    }


WAYS = ("acl_op", "op_api")


def _holds(releases: Any, release: str) -> bool:
    """Whether a release is among those of an entry: all, from one to another, or some by name."""
    if releases is None or releases == "all_version":
        return releases is not None
    if isinstance(releases, str):
        return f"v{release}" in releases.split(", ")
    first, last = (NEWEST if each == "newest" else each.removeprefix("v") for each in releases)
    return _number(first) <= _number(release) <= _number(last)


def _number(release: str) -> tuple[int, ...]:
    return tuple(map(int, release.split(".")))


def mlu(adapter: Path) -> dict[str, set[str]]:
    """The list is of the newest branch, which is for torch 2.4."""
    listed = _yaml(adapter, "codegen/mlu_functions.yaml", "r2.4_develop")
    return {"2.4": {_name(entry) for entry in listed["aten"]}}


def musa(adapter: Path) -> dict[str, set[str]]:
    """The adapter refuses releases before 2.7.1, and warns of newer ones."""
    listed = _yaml(adapter, "torch_musa/csrc/aten/ops/musa_functions.yaml")
    registered = re.findall(r'm\.impl\(\s*"([\w.]+)"', _grep(adapter, "m.impl(", "torch_musa/csrc"))
    return {"2.7": {_name(entry) for entry in listed} | set(registered)}


def hpu(adapter: Path) -> dict[str, set[str]]:
    """What is generated, and what is registered by hand."""
    generated = set(_yaml(adapter, "scripts/hpu_op.yaml"))
    by_hand = re.findall(r"aten::([\w.]+)", _show(adapter, "HEAD", "scripts/ops_list/kr_ops.hpu"))
    return {"2.5": generated | set(by_hand)}


def xla(adapter: Path) -> dict[str, set[str]]:
    """Operators that are lowered to XLA."""
    listed = _yaml(adapter, "codegen/xla_native_functions.yaml")
    return {"2.9": {_name(each) for topic in XLA_TOPICS for each in listed[topic]}}


XLA_TOPICS = ("full_codegen", "ir_gen", "supported", "autograd")

KINDS = {
    "npu": ("Ascend NPUs", npu, {
        "Ascend+op-plugin": "op_plugin/config/op_plugin_functions.yaml",
        "Ascend+pytorch": "torch_npu/csrc/aten/npu_native_functions.yaml",
    }),
    "mlu": ("Cambricon MLUs", mlu, {"Cambricon+torch_mlu": "codegen/mlu_functions.yaml, branch r2.4_develop"}),
    "musa": ("Moore Threads GPUs", musa, {
        "MooreThreads+torch_musa": "torch_musa/csrc/aten/ops/musa_functions.yaml and m.impl in torch_musa/csrc",
    }),
    "hpu": ("Gaudi accelerators", hpu, {
        "HabanaAI+gaudi-pytorch-bridge": "scripts/hpu_op.yaml, scripts/ops_list/kr_ops.hpu",
    }),
    "xla": ("XLA devices", xla, {"pytorch+xla": "codegen/xla_native_functions.yaml"}),
}  # fmt: skip
"""For each kind: of what, how the lists are read, and the clones (``OWNER+NAME``) with what is read in them."""


def _name(entry: Any) -> str:
    return str(entry["func"] if isinstance(entry, dict) else entry).partition("(")[0].strip()


def _yaml(clone: Path, path: str, branch: str = "HEAD") -> Any:
    return yaml.load(_show(clone, branch, path), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def _commit(clone: Path) -> str:
    return _git(clone, ["rev-parse", "--short=8", "HEAD"]).strip()


def _show(clone: Path, branch: str, path: str) -> str:
    return _git(clone, ["show", f"{branch}:{path}"])


def _grep(clone: Path, text: str, path: str) -> str:
    return _git(clone, ["grep", "-hF", text, "HEAD", "--", path])


def _git(clone: Path, arguments: Iterable[str]) -> str:
    folder = next(each for each in (clone / "repo", clone) if each.exists())
    return subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    main(Path(sys.argv[1]))
