"""What a target names, as programs that can be made for any device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from assay.audit.cases.case import Case
from assay.audit.running.targets import Target, find_cases, run_program, runs_cases
from assay.audit.tensor_trees import for_device, mapped
from assay.native.library import in_torch

Make = Callable[[torch.device], Callable[[], Any]]


@dataclass(frozen=True)
class ParityProgram:
    """Something to run on the CPU and on a device."""

    name: str  # what it is called
    make: Make  # ``make(device)`` gives the call to run
    why_not: str = ""  # why it cannot be run here; empty if it can


def programs(target: Target, device: str) -> Iterator[ParityProgram]:
    """The programs of a target that is compared on a device: one for each metric in it, or its function or script.

    A function is called with the device if it takes an argument. A script, and a function without arguments, find the
    device by themselves. Raises a ConfigError where the target names nothing that can be run.
    """
    if runs_cases(target):
        yield from (_of_case(case, device) for case in find_cases(target))
    else:
        yield ParityProgram(target.text, lambda there: lambda: run_program(target, there))


def _of_case(case: Case, device: str) -> ParityProgram:
    """A metric's inputs are float32 where the device has no float64: on the CPU, too, so that both compute the same."""
    inputs = for_device(case.batches, device)

    def make(there: torch.device) -> Callable[[], Any]:
        metric = case.move(case.build(), there)
        batches = mapped(inputs, lambda tensor: tensor.clone().to(there))

        def measure() -> Any:
            with in_torch():
                for batch in batches:
                    case.update(metric, batch)
                return case.compute(metric)

        return measure

    return ParityProgram(case.name, make, case.why_not)
