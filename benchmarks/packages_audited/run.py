"""Run the cases of a driver on pretended devices, in this process, and keep what the audit finds in the packages.

One process for all cases, as most of the time is spent importing packages. What is found is written after each case.
"""

from __future__ import annotations

import importlib.util
import json
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import torch

from assay.audit import Case
from assay.audit.findings.finding import Finding
from assay.audit.findings.judge import judge
from assay.audit.running.exercise import exercise
from assay.audit.watching.collect import Collector
from assay.audit.watching.observations import MOVED, Observation, unpack

DEVICES = ("mps", "cuda:1")
RULES = (
    "mixed-devices", "dtype-missing", "operator-missing", "device-error", "result-elsewhere", "state-elsewhere",
    "moved-to-default-device", "hard-coded-device", "map-location", "cpu-collective",
)  # fmt: skip
"""What goes wrong on the device; what only costs time there is not looked at."""


def cases_of(driver: Path) -> Iterator[Case]:
    """The cases that a driver gives."""
    spec = importlib.util.spec_from_file_location(driver.stem, driver)
    assert spec is not None
    assert spec.loader is not None, driver
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield from module.audit_cases()


def run(case: Case, devices: tuple[str, ...] = DEVICES) -> tuple[list[Finding], list[str]]:
    """The findings of a case, at the lines of its package, and why parts of it were not run."""
    lines: list[str] = []
    package = case.name.partition(".")[0]
    spec = importlib.util.find_spec(package)
    roots = tuple(f"{folder}/" for folder in (spec and spec.submodule_search_locations) or ())
    for device in devices:
        exercise(case, device, (MOVED,), "auto", Collector(lines.append, roots))
    messages = [json.loads(line) for line in lines]
    seen: list[Observation] = [unpack(each["observation"]) for each in messages if each["message"] == "observation"]
    unrun = [each["unrun"]["why"] for each in messages if each["message"] == "unrun"]
    found = [each for each in judge(seen, roots) if each.rule in RULES and each.severity != "note"]
    return found, list(dict.fromkeys(unrun))


@cache
def distributions() -> Mapping[str, list[str]]:
    """The names on PyPI by the names that are imported."""
    return packages_distributions()


def summary(case: Case, found: list[Finding], unrun: list[str], seconds: float) -> dict[str, Any]:
    """What a case showed, as plain values."""
    package = case.name.partition(".")[0]
    distribution = distributions().get(package, [package])[0]
    return {
        "case": case.name,
        "distribution": distribution,
        "version": version(distribution),
        "seconds": round(seconds, 1),
        "unrun": [each.splitlines()[0][:300] for each in unrun],
        "findings": [
            {
                "where": each.where.rpartition("site-packages/")[2],
                "rule": each.rule,
                "severity": each.severity,
                "devices": list(each.devices),
                "code": each.code,
                "what": each.what,
                "from": [f"{x.what} at {x.file.rpartition('site-packages/')[2]}:{x.line}" for x in each.origins],
            }
            for each in found
        ],
    }


def run_drivers(out: Path, *drivers: Path) -> None:
    """Run the cases of the drivers that are not in the results yet, and append each to them."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    known = {json.loads(line)["case"] for line in out.read_text("utf-8").splitlines()} if out.exists() else set()
    with out.open("a", encoding="utf-8") as file:
        for case in (case for driver in drivers for case in cases_of(driver)):
            if case.name in known:
                continue
            start = time.monotonic()
            try:
                found, unrun = run(case)
            except Exception as error:
                found, unrun = [], [f"the audit itself failed: {type(error).__name__}: {error}"]
            file.write(json.dumps(summary(case, found, unrun, time.monotonic() - start)) + "\n")
            file.flush()
