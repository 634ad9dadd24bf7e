"""What a target names, as programs that can be made for any device."""

from __future__ import annotations

import inspect
import os
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.audit.case import Case
from assay.audit.targets import Target, find_cases, hooks, is_metric, load, named
from assay.audit.tensor_trees import mapped
from assay.devices import supports
from assay.native.library import library

Make = Callable[[torch.device], Callable[[], Any]]


@dataclass(frozen=True)
class ParityProgram:
    """Something to run on the CPU and on a device.

    Attributes:
        name: what it is called.
        make: ``make(device)`` gives the call to run.
        why_not: why it cannot be run here; empty if it can.
    """

    name: str
    make: Make
    why_not: str = ""


@contextmanager
def in_torch() -> Iterator[None]:
    """A block in which assay uses no compiled code, which works on the CPU only, and whose steps no one can see."""
    before = os.environ.get("ASSAY_NATIVE")
    os.environ["ASSAY_NATIVE"] = "0"
    library.cache_clear()
    try:
        yield
    finally:
        del os.environ["ASSAY_NATIVE"]
        os.environ.update({} if before is None else {"ASSAY_NATIVE": before})
        library.cache_clear()


def programs(target: Target, device: str) -> Iterator[ParityProgram]:
    """The programs of a target that is compared on a device: one for each metric in it, or its function or script.

    A function is called with the device if it takes an argument. A script, and a function without arguments, find the
    device by themselves. Raises a ConfigError where the target names nothing that can be run.
    """
    if target.library or (not target.name and "audit_cases" in hooks(target)):
        yield from (_of_case(case, device) for case in find_cases(target))
        return
    if target.name:
        thing = named(target, load(target))
        if inspect.isclass(thing):
            yield from (_of_case(case, device) for case in find_cases(target))
        else:
            yield ParityProgram(target.text, _of_function(thing))
    elif "audit" in hooks(target):
        yield ParityProgram(target.text, _of_function(load(target).audit))
    elif (target.file is None or target.only_defines()) and _has_metrics(load(target)):
        yield from (_of_case(case, device) for case in find_cases(target))
    else:
        yield ParityProgram(target.text, lambda _: lambda: _run_script(target))


def _of_function(function: Callable[..., Any]) -> Make:
    takes = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    return lambda device: lambda: function(device) if takes else function()


def _of_case(case: Case, device: str) -> ParityProgram:
    """Metrics read from float32 where the device has no float64: on the CPU, too, so that the two compute the same."""
    narrow = not supports(device.partition(":")[0], "float64")

    def held(tensor: Tensor) -> Tensor:
        return tensor.float() if narrow and tensor.dtype == torch.float64 else tensor.clone()

    def make(there: torch.device) -> Callable[[], Any]:
        metric = case.move(case.build(), there)
        batches = [mapped(batch, lambda tensor: held(tensor).to(there)) for batch in case.batches]

        def measure() -> Any:
            with in_torch():
                for batch in batches:
                    case.update(metric, batch)
                return case.compute(metric)

        return measure

    return ParityProgram(case.name, make, case.why_not)


def _has_metrics(module: Any) -> bool:
    things = vars(module).values()
    return any(inspect.isclass(thing) and thing.__module__ == module.__name__ and is_metric(thing) for thing in things)


def _run_script(target: Target) -> None:
    """What a script leaves behind is no result: its variables are not compared, its operators are."""
    if target.file is None:
        runpy.run_module(target.module, run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(str(target.file), run_name="__main__")
