"""``assay audit --parity``: every program of a target on every device asked for, and what came of it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from assay.audit.parity.programs import programs
from assay.audit.parity.runs import EngineName, Mode, ParityResult, checked, compare_runs
from assay.audit.parity.show import Shower
from assay.audit.targets import parse
from assay.errors import AssayError

SCHEMA = "assay.parity/1"
AGREE, DIVERGE, NOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class NotCompared:
    """What could not be compared, and why; ``known`` where that is the target's own word (it needs a download)."""

    target: str
    device: str
    why: str
    known: bool = False


@dataclass
class ParityAudit:
    """All that a command compared.

    Attributes:
        compared: one for each program and device.
        unrun: what could not be compared.
    """

    compared: list[ParityResult] = field(default_factory=list)
    unrun: list[NotCompared] = field(default_factory=list)

    @property
    def exit_code(self) -> int:
        """0: everything agrees; 1: something diverges; 2: a part could not be compared, and no other diverges."""
        if any(parity.divergences for parity in self.compared):
            return DIVERGE
        missing = any(not part.known for part in self.unrun) or any(not parity.agrees for parity in self.compared)
        return NOT_RUN if missing or not self.compared else AGREE

    def to_json(self) -> str:
        """The same for programs."""
        plain: dict[str, Any] = {
            "schema": SCHEMA,
            "compared": [parity.to_dict() for parity in self.compared],
            "unrun": [asdict(part) for part in self.unrun],
        }
        return json.dumps(plain, indent=2)


def run(
    target: str,
    on: Sequence[str],
    *,
    mode: Mode = "lockstep",
    engine: EngineName = "auto",
    as_json: bool = False,
    relative: float | None = None,
    absolute: float | None = None,
    seed: int = 0,
) -> int:
    """Compare devices with the CPU, and print what came of it.

    Args:
        target: a file, a module, ``module:name``, or a library of metrics.
        on: the devices, such as ``["mps", "cuda:1"]``; pretend ones where this machine has none.
        mode: ``"lockstep"`` or ``"free"``, see :func:`assay.audit.parity.compare`.
        engine: of the pretend devices.
        as_json: print JSON for programs.
        relative: the relative tolerance, instead of that of the dtypes.
        absolute: the absolute tolerance.
        seed: of the random numbers.

    Returns:
        The exit code: 0 if all values agree, 1 if any diverge, 2 if something could not be compared.

    Raises:
        ConfigError: there is no such target, device or mode.
    """
    checked(mode, relative, absolute)
    done, shower = ParityAudit(), Shower(silent=as_json)
    for device in on:
        for parity in _all(target, device, done, mode, engine, relative, absolute, seed):
            done.compared.append(parity)
            shower.show(parity)
    if as_json:
        print(done.to_json())
    else:
        shower.sum_up(done.compared, [(part.target, part.device, part.why) for part in done.unrun])
    return done.exit_code


def _all(
    target: str,
    device: str,
    done: ParityAudit,
    mode: Mode,
    engine: EngineName,
    relative: float | None,
    absolute: float | None,
    seed: int,
) -> Iterator[ParityResult]:
    for program in programs(parse(target), device):
        if program.why_not:
            done.unrun.append(NotCompared(program.name, device, program.why_not, known=True))
            continue
        try:
            with contextlib.redirect_stdout(_Quiet()):
                parity = compare_runs(
                    program.make,
                    target=program.name,
                    device=device,
                    mode=mode,
                    engine=engine,
                    relative=relative,
                    absolute=absolute,
                    seed=seed,
                )
        except AssayError as error:
            done.unrun.append(NotCompared(program.name, device, str(error)))
        else:
            yield parity


class _Quiet(io.TextIOBase):
    """Sends what a program prints to stderr, where it does not get between the results."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)
