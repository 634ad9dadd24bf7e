"""The findings in packages that use torch (``findings.toml``), and how much of them was run (``audited.json``)."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class PackageFinding:
    """A line of a package that goes wrong on a device."""

    line: str  # the file below site-packages, and the number
    rule: str
    devices: tuple[str, ...]
    reproduce: str  # Python that fails with ``seen``; ``torch`` and ``device`` are there
    seen: str  # how the error begins: its type and its text
    why: str
    fix: str


@dataclass(frozen=True)
class Package:
    """A package with findings."""

    name: str
    version: str
    title: str  # of the issue that can be filed
    findings: tuple[PackageFinding, ...]
    repository: str = ""
    still: str = ""  # a commit from after the release that was looked at and has the same lines


@dataclass(frozen=True)
class Audited:
    """A package that was audited: how many of its functions and classes were called on each device."""

    name: str
    version: str
    calls: int


def packages() -> list[Package]:
    """The packages with findings, by name."""
    plain = tomllib.loads((HERE / "findings.toml").read_text("utf-8"))["package"]
    found = []
    for each in plain:
        lines = tuple(PackageFinding(**one | {"devices": tuple(one["devices"])}) for one in each.pop("finding"))
        found.append(Package(**each, findings=lines))
    return sorted(found, key=lambda package: package.name)


def audited() -> list[Audited]:
    """The packages that were audited, by name."""
    return [Audited(**each) for each in json.loads((HERE / "audited.json").read_text("utf-8"))]


def summarize(results: list[Path]) -> None:
    """Write ``audited.json`` from what ``run`` wrote: the calls that ran, of each package."""
    calls: dict[tuple[str, str], set[str]] = {}
    for path in results:
        for line in path.read_text("utf-8").splitlines():
            one = json.loads(line)
            if not one["unrun"]:
                calls.setdefault((one["distribution"], one["version"]), set()).add(one["case"])
    rows = [{"name": name, "version": version, "calls": len(of)} for (name, version), of in calls.items()]
    rows.sort(key=lambda row: str(row["name"]).lower())
    (HERE / "audited.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
