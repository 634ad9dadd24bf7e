"""``assay audit --parity``: every program of a target on every device, compared with the CPU."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from typing import Any

from assay._records import Record
from assay.audit.parity.programs import programs
from assay.audit.parity.runs import EngineName, Mode, ParityResult, checked, compare_runs
from assay.audit.parity.view import summary_document
from assay.audit.running.targets import parse
from assay.audit.watching.observations import Unrun
from assay.errors import AssayError
from assay.render import Document, Viewable
from assay.render.terminal import show

AGREE, DIVERGE, NOT_RUN = 0, 1, 2


class ParityAudit(Record, Viewable, schema="assay.parity/2"):
    """All that a command compared.

    Attributes:
        compared: one for each program and device.
        unrun: what could not be compared.
    """

    compared: tuple[ParityResult, ...]
    unrun: tuple[Unrun, ...]

    pipe_width = ParityResult.pipe_width

    @property
    def exit_code(self) -> int:
        """0: everything agrees; 1: something diverges; 2: a part could not be compared, and no other diverges."""
        if any(parity.divergences for parity in self.compared):
            return DIVERGE
        missing = any(not part.known for part in self.unrun) or any(not parity.agrees for parity in self.compared)
        return NOT_RUN if missing or not self.compared else AGREE

    def to_document(self) -> Document:
        """The document that is shown: each comparison, and the summary."""
        parts = [*(parity.to_document() for parity in self.compared), summary_document(self.compared, self.unrun)]
        return Document("Parity with the CPU", tuple(chapter for part in parts for chapter in part.chapters))


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
    """Compare devices with the CPU, and print each comparison when it is done.

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
    options: dict[str, Any] = {"mode": mode, "engine": engine, "seed": seed}
    options |= {"relative": relative, "absolute": absolute}
    compared: list[ParityResult] = []
    unrun: list[Unrun] = []
    for device in on:
        for program in programs(parse(target), device):
            if program.why_not:
                unrun.append(Unrun(program.name, device, "", program.why_not, known=True))
                continue
            try:
                with contextlib.redirect_stdout(sys.stderr):  # what a program prints does not get between the results
                    compared.append(compare_runs(program.make, target=program.name, device=device, **options))
            except AssayError as error:
                unrun.append(Unrun(program.name, device, "", str(error)))
            else:
                if not as_json:
                    compared[-1].show()
    audit = ParityAudit(tuple(compared), tuple(unrun))
    if as_json:
        print(audit.to_json(), end="")
    else:
        show(summary_document(compared, unrun), pipe_width=audit.pipe_width)
    return audit.exit_code
