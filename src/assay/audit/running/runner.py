"""Runs a target on each device, each in a process of its own, and judges what they saw."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from assay.audit.findings.judge import judge
from assay.audit.findings.result import Audit
from assay.audit.findings.rulebook import chosen
from assay.audit.findings.suppress import suppressed
from assay.audit.running.targets import parse
from assay.audit.running.worker import Job
from assay.audit.watching.observations import USAGES, Observation, Unrun, unpack
from assay.devices.kinds import AUDITED, PRETENDED
from assay.errors import ConfigError, describe

START_S = 900.0  # for importing the target and, once, compiling the engine
LOOK_S = 0.05
TAIL = 3  # lines of a process's last words that are shown


@dataclass(frozen=True)
class AuditProgress:
    """How far the audit is on one device."""

    device: str
    done: int
    total: int
    subject: str


def audit(
    target: str,
    on: Sequence[str] = AUDITED,
    *,
    usages: Sequence[str] = USAGES,
    engine: str = "auto",
    timeout: float = 120.0,
    only: Iterable[str] = (),
    without: Iterable[str] = (),
    arguments: Sequence[str] = (),
    inputs: Sequence[str] = (),
    progress: Callable[[AuditProgress], object] | None = None,
) -> Audit:
    """Run a target on devices that are not there, and say which lines would go wrong or slowly on real ones.

    Args:
        target: a Python file, a module, ``module:Class``, ``module:function``, a ``torch.nn.Module`` as ``module:Net``,
            or an installed metric library (``torchmetrics``, ``ignite.metrics``, ``torcheval.metrics``).
        on: the devices. ``"cuda:1"`` means two GPUs of which the first is the default.
        usages: of metrics: ``"moved first"`` (to the device, then fed from there) and ``"not moved"`` (fed only).
        engine: of the pretend devices: ``"auto"``, ``"native"`` or ``"python"``.
        timeout: seconds that a script or one metric may take on a device.
        only: ids of rules; no others are reported.
        without: ids of rules that are not reported.
        arguments: command-line arguments of a script; ``{device}`` stands for the device.
        inputs: what a ``torch.nn.Module`` takes, in order: shape and dtype, such as ``"8x3x32x32"``, ``"8x16:int64"``.
            Guessed from its first layer by default.
        progress: called with how far it is.

    Returns:
        The findings, and what could not be run.

    Raises:
        ConfigError: there is no such target, device, usage or rule, or no time.

    Example:
        >>> result = audit("assay:Accuracy", on=["mps"])
        >>> result.findings, result.exit_code()
        ((), 0)
    """
    parsed, ids = parse(target), chosen(only, without)
    if not ids:
        do = "Do not ignore all that are asked for"
        raise ConfigError(describe("rules", "none that is left", "at least one", do))
    _check(on, usages)
    if not timeout > 0:  # nor NaN
        raise ConfigError(describe("timeout", timeout, "seconds, more than 0", "Give the target time to run"))

    def job(device: str) -> Job:
        words = tuple(argument.replace("{device}", device) for argument in arguments)
        return Job(target, device, tuple(usages), engine, words, inputs=tuple(inputs))

    begun, workers = time.monotonic(), [_Worker(job(device), timeout, progress) for device in on]
    with ThreadPoolExecutor(max_workers=min(len(on), os.cpu_count() or 1)) as pool:
        try:
            list(pool.map(_Worker.run, workers))
        finally:
            for worker in workers:
                worker.stop()
    observations = [observation for worker in workers for observation in worker.observations.values()]
    findings = [each for each in suppressed(judge(observations, parsed.roots())) if each.rule in ids]
    unrun = tuple(dict.fromkeys(part for worker in workers for part in worker.unrun))
    subjects = len({subject for worker in workers for subject in worker.subjects})
    return Audit(target, tuple(on), tuple(findings), unrun, subjects, version("torch"), time.monotonic() - begun)


def _check(on: Sequence[str], usages: Sequence[str]) -> None:
    if not on:
        raise ConfigError(describe("on", "no device", "at least one", f"Name some of {', '.join(AUDITED)}"))
    for device in on:
        kind, _, index = device.partition(":")
        if kind not in PRETENDED or not (index or "0").isdigit():
            raise ConfigError(describe("device", repr(device), "mps, cuda, cuda:1, xpu or the like", 'Pass on=["mps"]'))
    for usage in usages:
        if usage not in USAGES:
            raise ConfigError(describe("usage", repr(usage), " or ".join(map(repr, USAGES)), "Check the spelling"))


@dataclass
class _Worker:
    """One device: a process, and after a crash another one that goes on with the next case."""

    job: Job
    timeout: float
    progress: Callable[[AuditProgress], object] | None
    observations: dict[tuple[int, int], Observation] = field(default_factory=dict)
    unrun: list[Unrun] = field(default_factory=list)
    subjects: set[str] = field(default_factory=set)
    _process: subprocess.Popen[bytes] | None = None
    _current: tuple[int, str] | None = None
    _total: int = 0
    _finished: bool = False
    _stopped: bool = False
    _incarnation: int = 0
    _again: str = ""
    _seen: set[tuple[object, ...]] = field(default_factory=set)  # in this run and those before
    _seen_before: set[tuple[int, int]] = field(default_factory=set)

    def run(self) -> None:
        """Run until the target is through, on as many processes as it takes."""
        with tempfile.TemporaryDirectory(prefix="assay-audit-") as folder:
            while True:
                self._incarnation += 1
                why = self._attend(Path(folder))
                if self._again and not self._stopped:
                    self.job, self._again, self._finished = replace(self.job, second=self._again), "", False
                    continue
                if self._finished or self._stopped:
                    return
                if self.job.second:
                    self.unrun.append(
                        Unrun(self.job.target, self.job.device, "", f"in a further run ({self.job.second}): {why}")
                    )
                    return
                number, subject = self._current or (self._total, self.job.target)
                self.unrun.append(Unrun(subject, self.job.device, "", why))
                if number + 1 >= self._total:
                    return
                self.job = replace(self.job, first=number + 1)

    def stop(self) -> None:
        """Kill the process."""
        self._stopped = True
        if self._process is not None:
            _kill(self._process)

    def _attend(self, folder: Path) -> str:
        """Start a process, read what it writes until it ends, and say why it ended early."""
        messages, output = folder / f"{self._incarnation}.jsonl", folder / f"{self._incarnation}.txt"
        messages.touch()
        job = replace(self.job, messages=str(messages))
        self._current, since = None, time.monotonic()
        with output.open("wb") as printed, messages.open("r", encoding="utf-8") as lines:
            command = [sys.executable, "-m", "assay.audit.running.worker", job.to_json()]
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed, start_new_session=True
            )
            try:
                while True:
                    ended = self._process.poll() is not None
                    if self._read(lines):
                        since = time.monotonic()
                    if ended or self._finished:
                        break
                    if time.monotonic() - since > (self.timeout if self._current else START_S):
                        return f"did not end within {self.timeout:g} s (--timeout); it was stopped there"
                    time.sleep(LOOK_S)
            finally:
                _kill(self._process)
        return _end_of(self._process.returncode, output)

    def _read(self, lines: Any) -> bool:
        """Take in the lines that are complete; whether a case began or ended."""
        moved = False
        while True:
            place = lines.tell()
            line = lines.readline()
            if not line.endswith("\n"):
                lines.seek(place)  # a line that is still being written
                return moved
            moved |= self._take(json.loads(line))

    def _take(self, message: dict[str, Any]) -> bool:
        kind = message["message"]
        if kind == "observation":
            self._observe(message["number"], unpack(message["observation"]))
        elif kind == "count":
            key = self._incarnation, message["number"]
            if key not in self._seen_before:
                self.observations[key] = replace(self.observations[key], count=message["count"])
        elif kind == "unrun":
            self.unrun.append(Unrun(**message["unrun"]))
        elif kind == "again":
            self._again = message["how"]
        elif kind == "plan":
            self._total = message["total"]
        elif kind == "wait":
            self._report(0, message["why"])
        elif kind == "begin":
            self._current = message["number"], message["subject"]
            self.subjects.add(message["subject"])
            self._report(message["number"], message["subject"])
        elif kind == "done":
            self._finished = True
            self._report(self._total, "")
        elif kind == "failed":
            self._finished = True
            self.unrun.append(Unrun(self.job.target, self.job.device, "", message["why"]))
        return kind in ("begin", "end")

    def _observe(self, number: int, observation: Observation) -> None:
        """Keep an observation; of what an earlier run saw as well, the next one tells no more than where it began."""
        like = (observation.kind, observation.operator, observation.stack, observation.raised)
        if self.job.second and like in self._seen:
            self._seen_before.add((self._incarnation, number))
            if not observation.origins:
                return
            observation = replace(observation, count=0)
        self._seen.add(like)
        self.observations[self._incarnation, number] = observation

    def _report(self, done: int, subject: str) -> None:
        if self.progress is not None:
            self.progress(AuditProgress(self.job.device, done, self._total, subject))


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and those it started."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()


def _end_of(code: int, output: Path) -> str:
    """How a process ended that did not say that it was done, with the end of what it printed."""
    ended = f"ended by signal {signal.Signals(-code).name}" if code < 0 else f"ended itself with exit code {code}"
    lines = [line.strip() for line in output.read_text("utf-8", "replace").splitlines() if line.strip()][-TAIL:]
    return f"{ended}: {' / '.join(lines)}" if lines else ended
