"""Runs what reproduces each finding, on the first device that it names, and compares the error and its line."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

import torch

from assay.devices.kinds import KINDS
from assay.pretend import pretend
from benchmarks.packages_audited import torchvision_operators
from benchmarks.packages_audited.findings import Package, PackageFinding, packages


def reproduced(finding: PackageFinding) -> str:
    """What is otherwise than the finding says, or empty."""
    device = finding.devices[0]
    with pretend(device):  # type: ignore[arg-type]
        try:
            exec(compile(finding.reproduce, finding.line, "exec"), {"torch": torch, "device": device})
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            file, _, number = finding.line.rpartition(":")
            lines = {f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno}" for frame in _frames(error)}
            if finding.seen not in text:
                return f"raises {text.splitlines()[0]}"
            return "" if f"{file}:{number}" in lines else f"raises at {sorted(lines)}"
    return "does not raise"


def _frames(error: BaseException) -> Iterator[traceback.FrameSummary]:
    yield from traceback.extract_tb(error.__traceback__)


def wrong(names: list[str]) -> Iterator[tuple[Package, PackageFinding, str]]:
    """The findings, of these packages or of all, that do not show what they say."""
    torchvision_operators.define()
    chosen = [(each, one) for each in packages() if not names or each.name in names for one in each.findings]
    # a process in which a device of an adapter was pretended takes no other kind: these are last
    for package, finding in sorted(chosen, key=lambda pair: KINDS[pair[1].devices[0].partition(":")[0]].renamed):
        if what := reproduced(finding):
            yield package, finding, what
