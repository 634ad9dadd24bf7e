"""Measuring on this machine which kernel is the fastest for how many rows; ``records`` keeps it for the dispatch."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import product
from typing import NamedTuple

import torch
from torch import Tensor

from assay.devices.capabilities import device_type
from assay.devices.processor import processor, why_not_here
from assay.errors import AssayWarning, ConfigError, DeviceError, describe, warn
from assay.progress import ProgressBar
from assay.quantize import dispatch, tuning_records
from assay.quantize.kernels import KERNELS, KernelWeight
from assay.quantize.rounding import quantize_weight
from assay.quantize.scheme import Scheme
from assay.quantize.timing import in_turns
from assay.quantize.tuning_records import Steps, TuningRecord, TuningResult

SHAPE = (4096, 4096)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SCHEMES = ("int4", "int8", "int8:dynamic")  # those of 4 bits with other groups go by the first
DTYPES = ("bfloat16", "float16", "float32")
COLD_BYTES = 96 << 20  # weights of a model come from memory, so that copies of one are read in turns
SECONDS = 45.0
ROUNDS, MOST_ROUNDS = 3, 200
PATIENCE = 1.0  # seconds after which not even so many rounds are waited for
LOST = 3.0  # a kernel that takes so many times as long, and falls back further, is not timed for more rows
STEADY = 1.5  # the median of a kernel may be so many times its fastest call, on a machine that does nothing else
SWITCH = math.log(1.04)  # what is gained by another kernel must be more than the noise

Say = Callable[[str], None]


class TuningCase(NamedTuple):
    """One dtype and scheme, and the kernels between which there is a choice."""

    dtype: str
    scheme: Scheme
    kernels: list[str]


def tune(
    device: str | torch.device = "cpu",
    *,
    schemes: Sequence[str | Scheme] = SCHEMES,
    dtypes: Sequence[str] = DTYPES,
    shape: tuple[int, int] = SHAPE,
    rows: Sequence[int] = ROWS,
    seconds: float = SECONDS,
    keep: bool = True,
    progress: bool | None = None,
) -> TuningResult:
    """Measure the kernels of a device of this machine, and keep what was found for all models that run here.

    Kernels take turns; of each the median counts. Several copies of the weight are read in turns, as in a model that is
    larger than the caches. Where two kernels are within 4 %, the one that is taken already stays.

    Args:
        device: what to measure on.
        schemes: of the weights.
        dtypes: of the activations.
        shape: of the weights; crossings differ little from 1024 x 1024 on.
        rows: at how many to measure.
        seconds: how long it may take in all, about.
        keep: write it to the cache folder.
        progress: show a bar; None: where there is a terminal.

    Returns:
        What was measured.

    Raises:
        ConfigError: unknown schemes, or nothing to choose between.
        DeviceError: the device is not here.

    Warns:
        AssayWarning: the machine did other things at the same time; then nothing is kept.
    """
    where = torch.device(device)
    _check(where, rows, seconds, dtypes)
    cases = _cases(where, schemes, dtypes, shape)
    by_case = []
    start = time.perf_counter()
    with ProgressBar("Measuring", seconds, progress, unit="seconds") as bar:

        def show_step(text: str) -> None:
            bar.update(completed=time.perf_counter() - start, text=text)

        for left, case in zip(range(len(cases), 0, -1), cases, strict=True):
            seconds_left = max(0.0, seconds - (time.perf_counter() - start))
            by_case.append(_measure(case, where, shape, tuple(rows), seconds_left / left, show_step))
    kind = device_type(where)
    today, threads = date.today().isoformat(), torch.get_num_threads()
    result = TuningResult(kind, str(torch.__version__), processor(str(where)), today, threads, shape, tuple(by_case))
    unsteady = max(each.unsteady for each in by_case)
    if unsteady > STEADY:
        got = f"medians {unsteady:.1f} times the fastest calls"
        do = "Run it again when the machine is idle; nothing was kept"
        warn(describe("tune", got, f"{STEADY} times or less", do), AssayWarning)
    elif keep:
        path = tuning_records.file_for(kind)
        if path is not None:
            result.save(path)
        dispatch.default_table.cache_clear()
    return result


def show(result: TuningResult) -> str:
    """The measurements as a table of text: the fastest kernel by rows, and by how much."""
    lines = [f"{result.device}: {result.processor}, torch {result.torch}, {result.threads} threads, {result.date}"]
    for each in result.measured:
        steps = ", ".join(f"from {at} rows {name}" for at, name in each.steps)
        lines.append(f"\n{each.scheme}, {each.dtype}: {steps}")
        lines.append("  " + "rows".rjust(14) + "".join(f"{n:>9}" for n in each.rows))
        for name, row in each.milliseconds.items():
            lines.append("  " + name.rjust(14) + "".join("      ---" if ms != ms else f"{ms:9.3f}" for ms in row))
    return "\n".join([*lines, "", "milliseconds, medians"])


def steps_of(rows: Sequence[int], times: Mapping[str, Sequence[float]]) -> Steps:
    """From times to steps: the least sum of logarithms, where each change of kernel costs as much as `SWITCH`.

    A change lies between two measured numbers of rows, where the straight lines through the logarithms meet.

    Example:
        >>> steps_of((1, 4, 16), {"a": (1.0, 2.0, 8.0), "b": (4.0, 4.0, 4.0)})
        ((1, 'a'), (8, 'b'))
    """
    logs = {name: [math.log(ms) if ms == ms else math.inf for ms in each] for name, each in times.items()}
    best = {name: (each[0], [name]) for name, each in logs.items()}
    for at in range(1, len(rows)):
        before, best = best, {}
        for name in logs:
            cost, choices = min((cost + SWITCH * (other != name), choices) for other, (cost, choices) in before.items())
            best[name] = (cost + logs[name][at], [*choices, name])
    choices = min(best.values())[1]
    steps = [(1, choices[0])]
    for at in range(1, len(rows)):
        if choices[at] != choices[at - 1]:
            steps.append((_crossing(rows, logs[choices[at - 1]], logs[choices[at]], at), choices[at]))
    return tuple(steps)


def _crossing(rows: Sequence[int], before: Sequence[float], after: Sequence[float], at: int) -> int:
    """The first number of rows for which ``after`` is as fast."""
    lead, lag = after[at - 1] - before[at - 1], before[at] - after[at]
    if not (lead > 0 and lag > 0 and math.isfinite(lead + lag)):
        return rows[at]
    low, high = math.log(rows[at - 1]), math.log(rows[at])
    return min(rows[at], math.ceil(math.exp(low + (high - low) * lead / (lead + lag)) - 1e-9))


def _check(device: torch.device, rows: Sequence[int], seconds: float, dtypes: Sequence[str]) -> None:
    if not rows or list(rows) != sorted(set(rows)) or rows[0] < 1:
        raise ConfigError(describe("rows", repr(rows), "ascending numbers from 1 on", "Pass (1, 8, 64)"))
    if not seconds > 0:
        raise ConfigError(describe("seconds", repr(seconds), "more than 0", "Pass 45"))
    if unknown := [each for each in dtypes if each not in DTYPES]:
        raise ConfigError(describe("dtypes", repr(unknown[0]), " or ".join(map(repr, DTYPES)), "Choose among them"))
    if why := why_not_here(device):
        do = "Measure on the machine that has it"
        raise DeviceError(describe("device", f"{device} ({why})", "one of this machine", do))


def _cases(
    device: torch.device, schemes: Sequence[str | Scheme], dtypes: Sequence[str], shape: tuple[int, int]
) -> list[TuningCase]:
    result = []
    parsed = [each if isinstance(each, Scheme) else Scheme.parse(each) for each in schemes]
    for scheme, dtype in product(parsed, dtypes):
        can = [name for name, kernel in KERNELS.items() if not kernel.why_not(device, dtype, scheme, shape)]
        if len(can) > 1:
            result.append(TuningCase(dtype, scheme, can))
    if not result:
        do = "Nothing is to be done: every layer takes it"
        raise ConfigError(describe("device", f"{device} with one kernel only", "several to choose between", do))
    return result


def _measure(
    case: TuningCase, device: torch.device, shape: tuple[int, int], rows: tuple[int, ...], seconds: float, say: Say
) -> TuningRecord:
    dtype = getattr(torch, case.dtype)
    what = f"{case.scheme}, {case.dtype}"
    say(f"{what}: packing")
    weight = torch.randn(shape, generator=torch.Generator().manual_seed(0), device="cpu").to(dtype)
    integers = quantize_weight(weight, case.scheme).to(device)
    packs = {name: _copies(KERNELS[name].pack(integers, dtype)) for name in case.kernels}
    medians: dict[str, list[float]] = {name: [] for name in case.kernels}
    unsteady = []
    begin = time.monotonic()
    for at, count in enumerate(rows):
        say(f"{what}: {count} rows")
        x = torch.randn(count, shape[1], generator=torch.Generator().manual_seed(count), device="cpu").to(device, dtype)
        left = max(0.0, seconds - (time.monotonic() - begin)) / (len(rows) - at)
        running = [name for name in case.kernels if not _lost(name, medians)]
        times = _times({name: packs[name] for name in running}, x, left)
        for name in case.kernels:
            medians[name].append(statistics.median(times[name]) if name in times else math.nan)
        unsteady += [statistics.median(each) / min(each) for each in times.values()]
    steps = steps_of(rows, medians)
    milliseconds = {name: tuple(times) for name, times in medians.items()}
    return TuningRecord(case.dtype, str(case.scheme), steps, rows, milliseconds, statistics.median(unsteady))


def _copies(packed: KernelWeight) -> list[KernelWeight]:
    """As many copies of a weight as are more than the caches hold."""
    nbytes = max(1, sum(tensor.nbytes for tensor in packed.tensors))
    count = max(1, min(16, -(-COLD_BYTES // nbytes)))
    return [replace(packed, tensors=tuple(tensor.clone() for tensor in packed.tensors)) for _ in range(count)]


def _lost(name: str, times: Mapping[str, Sequence[float]]) -> bool:
    """Whether a kernel is far behind and fell back further twice, or is out already."""
    mine = times[name][-3:]
    if any(ms != ms for ms in mine):
        return True
    best = [min(row[k] for row in times.values() if row[k] == row[k]) for k in range(-len(mine), 0)]
    behind = [ms / fastest for ms, fastest in zip(mine, best, strict=True)]
    return len(behind) == 3 and behind[2] > LOST and behind == sorted(behind)


def _times(packs: Mapping[str, list[KernelWeight]], x: Tensor, seconds: float) -> dict[str, list[float]]:
    """Milliseconds of each kernel in rounds in which they take turns: three at least, unless they take seconds."""

    def is_enough(rounds: int, spent: float) -> bool:
        limit = seconds if len(packs) > 1 else 0.0
        return rounds >= MOST_ROUNDS or spent > max(limit, PATIENCE if rounds < ROUNDS else 0.0)

    with torch.no_grad():
        for name, copies in packs.items():
            KERNELS[name].matmul(x, copies[-1])
        calls = {
            name: lambda turn, name=name, copies=copies: KERNELS[name].matmul(x, copies[turn % len(copies)])
            for name, copies in packs.items()
        }
        times = in_turns(calls, x.device, is_enough)
    return {name: [1e3 * each for each in seconds] for name, seconds in times.items()}
