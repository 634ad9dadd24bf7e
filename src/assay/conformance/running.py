"""Runs the checks of a device: in this process, or in another one, which a device may end."""

from __future__ import annotations

import json
import os
import platform
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import IO

import torch

from assay import __version__
from assay.conformance.checks import ConformanceCheck, checks_for, outcome_of
from assay.conformance.outcomes import CheckOutcome, expectations
from assay.conformance.result import DeviceCheck
from assay.devices.capabilities import device_type
from assay.devices.kinds import HOST
from assay.devices.policies import WITHOUT_VALUES, available
from assay.devices.pretend_state import pretended_kind
from assay.devices.processor import device_name, processor, why_not_here
from assay.errors import ConfigError, describe
from assay.progress import ProgressBar

STALL_S = 120.0
"""How long a check may take before its process is ended, in seconds."""
MOST_ENDED = 20
"""After so many processes that were ended the rest is not seen."""
FALLBACK = "PYTORCH_ENABLE_MPS_FALLBACK"  # with it operators that are missing would run


def check_device(device: str, *, progress: bool | None = None) -> DeviceCheck:
    """Check whether a device does what assay expects of it.

    The checks of a real accelerator run in a process of their own, as some errors of devices end a process: what ended
    it differs from what is expected, and the others go on in a new one.

    Args:
        device: the device, such as ``"mps"`` or ``"cuda:1"``; inside ``with pretend(...)`` the pretended one.
        progress: draw a progress bar; None: where the error stream is a terminal.

    Returns:
        What held and what did not.

    Raises:
        ConfigError: this machine has no such device.

    Example:
        >>> from assay.pretend import pretend
        >>> with pretend("mps"):  # doctest: +SKIP
        ...     print(check_device("mps").outcome)
        holds
    """
    require(device)
    is_pretended = pretended_kind() == device_type(device)
    checks, start = checks_for(device), datetime.now(UTC)
    is_apart = not is_pretended and device_type(device) != HOST
    found = outcomes_apart(checks, device) if is_apart else outcomes_here(checks, device)
    outcomes: list[CheckOutcome] = []
    with ProgressBar(f"Checking {device}", len(checks), progress) as bar:
        for each in found:
            outcomes.append(each)
            bar.update(advance=1, text=each.kind)
    return DeviceCheck(
        device=device,
        how="pretended" if is_pretended else "real",
        name=f"pretended {device}" if is_pretended else device_name(torch.device(device)),
        machine=machine(),
        expected_of={"torch": expectations().torch, "digest": expectations().digest},
        created=start.isoformat(timespec="seconds"),
        duration_s=round(bar.elapsed_s, 1),
        outcomes=tuple(outcomes),
    )


def require(device: str) -> None:
    """Raise where there is no such device.

    Raises:
        ConfigError: the machine has none, or torch knows no device of that name.
    """
    if device_type(device) in WITHOUT_VALUES:
        raise ConfigError(describe("device", repr(device), "one that computes values", "Name another device"))
    if pretended_kind() != device_type(device) and why_not_here(device):
        here = ", ".join(map(str, available()))
        do = f"Run this on a machine that has one, or pretend it: assay devices --check {device} --pretend"
        raise ConfigError(describe("device", repr(device), f"one of this machine: {here}", do))


def machine() -> dict[str, str]:
    """The system, its processor, and the releases of what computes."""
    return {
        "system": platform.platform(terse=True),
        "processor": processor("cpu"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "assay": __version__,
    }


def outcomes_here(checks: Sequence[ConformanceCheck], device: str) -> Iterator[CheckOutcome]:
    """Run checks one after the other in this process, from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        for check in checks:
            yield outcome_of(check, device)


def outcomes_apart(
    checks: Sequence[ConformanceCheck], device: str, command: Sequence[str] = (), stall_s: float = STALL_S
) -> Iterator[CheckOutcome]:
    """Run checks in another process; where a check ends it, that differs, and the others run in a new one.

    Args:
        checks: the checks that the other process runs, too.
        device: the device.
        command: starts the process, which is given the device and the number of the first check.
        stall_s: how long a check may take, in seconds.
    """
    command, done, ended = command or (sys.executable, "-m", "assay.conformance.worker"), 0, 0
    while done < len(checks) and ended < MOST_ENDED:
        with tempfile.TemporaryFile() as errors:
            for line in _lines([*command, device, str(done)], errors, stall_s):
                if done == len(checks):
                    break
                yield CheckOutcome.from_data(json.loads(line), "an outcome")
                done += 1
            if done < len(checks):
                check, ended = checks[done], ended + 1
                yield CheckOutcome(check.kind, check.name, "differs", _last_words(errors), "an answer")
                done += 1
    why = f"{MOST_ENDED} processes were ended by checks before it"
    yield from (CheckOutcome(each.kind, each.name, "not seen", why) for each in checks[done:])


def _lines(command: Sequence[str], errors: IO[bytes], stall_s: float) -> Iterator[str]:
    """What a process prints, line by line, until it ends or says nothing for too long; then it is ended."""
    environment = {name: value for name, value in os.environ.items() if name != FALLBACK}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, encoding="utf-8")
    assert process.stdout is not None
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    reader = threading.Thread(target=_put_lines, args=(process.stdout, lines), daemon=True)
    reader.start()
    try:
        with suppress(queue.Empty):
            while line := lines.get(timeout=stall_s):
                yield line
    finally:
        process.kill()
        process.wait()
        reader.join()
        process.stdout.close()


def _put_lines(stream: IO[str], lines: queue.SimpleQueue[str]) -> None:
    """Put each line of a stream, and at its end an empty one."""
    for line in stream:
        lines.put(line)
    lines.put("")


def _last_words(errors: IO[bytes]) -> str:
    """What a process that was ended printed last."""
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"the process ended or gave no answer{f': {lines[-1][:200]}' if lines else ''}"
