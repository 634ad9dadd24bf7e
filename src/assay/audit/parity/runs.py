"""Run the same thing on the CPU and on a device and name the operators that disagree."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from assay._records import Record
from assay.audit.parity.align import align
from assay.audit.parity.closeness import Tolerance, difference, tolerance_of
from assay.audit.parity.moved_copies import moved_copy
from assay.audit.parity.replay import NOTES, OperatorDivergence, Replay
from assay.audit.parity.steps import CallSite, OperatorStep, Recording, Watch, line_of
from assay.audit.parity.view import parity_document
from assay.devices import available
from assay.devices.placement import has_values
from assay.errors import AssayError, ConfigError, InputError, describe
from assay.pretend import session
from assay.pretend.errors import PretendError
from assay.pretend.session import PretendDevice
from assay.render import Document, Viewable

Mode = Literal["lockstep", "free"]
EngineName = session.EngineName
Device = str | torch.device | PretendDevice
MODES = ("lockstep", "free")
LIMIT = 4 << 30


class ParityResult(Record, Viewable):
    """What came of running one thing on the CPU and on a device.

    Attributes:
        target: what was run.
        device: the device, such as ``"cuda:1"``.
        engine: ``"real"``, or the engine of the pretend device.
        mode: ``"lockstep"`` or ``"free"``.
        steps: the operators that the CPU ran.
        compared: those whose values were compared on the device.
        random: those that drew random numbers: not compared, the device got the CPU's.
        results: how many of the values that the program returned were compared.
        divergences: where the device's run leaves the CPU's, in order.
        notes: what was otherwise than on the CPU while the values agree: other operators (a fused one, a list of
            tensors at once), whose values are compared where the two runs meet again, and other dtypes.
    """

    target: str
    device: str
    engine: str
    mode: str
    steps: int
    compared: int
    random: int
    results: int
    divergences: tuple[OperatorDivergence, ...]
    notes: tuple[OperatorDivergence, ...] = ()

    pipe_width = 160  # nobody can widen a pipe: few broken lines

    @property
    def first(self) -> OperatorDivergence | None:
        """The first divergence; in free mode the others are mostly its consequences."""
        return self.divergences[0] if self.divergences else None

    @property
    def agrees(self) -> bool:
        """Whether nothing diverged, and something was compared."""
        return not self.divergences and self.compared + self.results > 0

    def to_document(self) -> Document:
        """The document that is shown."""
        return parity_document(self)

    def __str__(self) -> str:
        head = f"{self.target} on {self.device} ({self.engine}), {self.mode}: {self.compared} operators compared"
        if self.first is None:
            return f"{head}, none diverges"
        return f"{head}, {len(self.divergences)} places diverge. First: {self.first}"


def compare(
    target: Callable[..., Any],
    *args: Any,
    device: Device,
    mode: Mode = "lockstep",
    relative: float | None = None,
    absolute: float | None = None,
    seed: int = 0,
    engine: EngineName = "auto",
    limit: int = LIMIT,
    **kwargs: Any,
) -> ParityResult:
    """Run a function or a module on the CPU and on a device, operator by operator, and say where the values part.

    The arguments are copied, so nothing of the caller's changes, and moved: tensors, modules, optimizers, objects with
    a method ``to``, ``torch.device("cpu")`` itself, in tuples, lists and dictionaries. A module that a function only
    finds around itself is not moved: pass it as an argument.

    Args:
        target: a function, a method or an ``nn.Module``.
        *args: its arguments, on the CPU.
        device: the device to compare with; a pretend one where this machine has none, or one that is open.
        mode: ``"lockstep"`` gives every operator of the device the CPU's operands, so that errors do not add up and
            every operator that is wrong is named; ``"free"`` lets each run go on with its own values.
        relative: the tolerance relative to the CPU's value, instead of that of the dtypes; needs ``absolute``.
        absolute: the absolute tolerance; needs ``relative``.
        seed: of torch's, NumPy's and Python's random numbers, before both runs. What the device draws is set to what
            the CPU drew, since generators differ between kinds of device.
        engine: of the pretend device.
        limit: the bytes of values that may be kept from the CPU's run.
        **kwargs: the target's keyword arguments; those that share a name with one above through `functools.partial`.

    Returns:
        The operators compared and every divergence, the first one first.

    Raises:
        InputError: the target fails on the CPU already, computes elsewhere there, or cannot be copied.
        CapacityError: the CPU's run has more values than ``limit``.
        ConfigError: no such mode, or only one of the two tolerances.
        PretendError: the pretend device has not the native engine, by which operators can be watched.

    Example:
        >>> model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
        >>> print(compare(model, torch.ones(2, 4), device="cpu"))
        Sequential on cpu (real), lockstep: 2 operators compared, none diverges

    Source:
        The tolerances are those of ``torch.testing.assert_close``.
    """

    def make(device: torch.device) -> Callable[[], Any]:
        function, positional, named = moved_copy((target, args, kwargs), device)
        return lambda: function(*positional, **named)

    return compare_runs(
        make,
        target=str(getattr(target, "__qualname__", "") or type(target).__name__),
        device=device,
        mode=mode,
        relative=relative,
        absolute=absolute,
        seed=seed,
        engine=engine,
        limit=limit,
    )


def compare_runs(
    make: Callable[[torch.device], Callable[[], Any]],
    *,
    target: str,
    device: Device,
    mode: Mode = "lockstep",
    relative: float | None = None,
    absolute: float | None = None,
    seed: int = 0,
    engine: EngineName = "auto",
    limit: int = LIMIT,
) -> ParityResult:
    """As :func:`compare`, whose other arguments, result and errors it has, for what must be made on each device anew.

    Args:
        make: gives the program for a device; what it does itself is not compared.
        target: the program's name.

    Example:
        >>> def make(device):
        ...     values = torch.arange(3.0, device=device)
        ...     return lambda: values.cumsum(0)
        >>> compare_runs(make, target="cumsum", device="cpu").agrees
        True
    """
    allowed = checked(mode, relative, absolute)
    with _seeds_restored():
        steps, expected = _on_cpu(make, seed, limit)
        with _device(device, engine) as (there, kind, unseen):
            replay = Replay(steps, mode, None, allowed, unseen)
            _on_device(make, there, replay, seed, expected)
            if not replay.in_step:  # the device runs other operators: once more, now that it is known which
                replay = Replay(steps, mode, align(steps, replay.calls), allowed, unseen)
                _on_device(make, there, replay, seed, expected)
    places = sorted(replay.divergences.by_place.values(), key=lambda divergence: divergence.step)
    notes = tuple(divergence for divergence in places if divergence.kind in NOTES)
    divergences = tuple(divergence for divergence in places if divergence.kind not in NOTES)
    counts = (len(steps), replay.compared, replay.random, replay.results)
    return ParityResult(target, str(there), kind, mode, *counts, divergences, notes)


def _on_cpu(
    make: Callable[[torch.device], Callable[[], Any]], seed: int, limit: int
) -> tuple[list[OperatorStep], list[Any]]:
    written = Recording(limit)
    try:
        _seed(seed)
        program = make(torch.device("cpu"))
        _seed(seed)
        with Watch(written.step):
            result = program()
    except AssayError:
        raise
    except Exception as error:
        fine = "a run to compare with"
        do = "Fix it on the CPU first"
        raise InputError(describe("the run on the CPU", f"{type(error).__name__}: {error}", fine, do)) from error
    return written.steps, [_copied(leaf) for leaf in tree_leaves(result)]


def _on_device(
    make: Callable[[torch.device], Callable[[], Any]],
    device: torch.device,
    replay: Replay,
    seed: int,
    expected: list[Any],
) -> None:
    try:
        _seed(seed)
        with replay.unseen():
            program = make(device)
        _seed(seed)
        with Watch(replay.step):
            result = program()
            replay.finish()
    except Exception as error:  # every error of the program is reported
        operator, place = replay.blamed(error) or ("", CallSite(line_of(error)))
        replay.divergences.add("error", operator, replay.position, place, f"{type(error).__name__}: {error}")
        return
    with replay.unseen():
        replay.results = _compare_results(expected, tree_leaves(result), replay)


def _compare_results(expected: list[Any], got: list[Any], replay: Replay) -> int:
    """What came out, and how much of it: seen by no step if it left torch on the way, as a NumPy array does."""
    divergences, last, compared = replay.divergences, replay.position, 0
    if len(expected) != len(got):
        why = f"{len(expected)} values on the CPU, {len(got)} on the device"
        divergences.add("result", "", last, CallSite(), why)
        return 0
    for cpu, device in zip(expected, got, strict=True):
        first, second = _as_tensor(cpu), _as_tensor(device)
        if first is None or second is None or not (has_values(first) and has_values(second)):
            continue
        if replay.is_drawn(device):
            continue
        compared += 1  # a number may come from any dtype: it is compared as float32
        if first.shape != second.shape:
            divergences.add("result", "", last, CallSite(), f"shape {tuple(first.shape)} against {tuple(second.shape)}")
        elif apart := difference(first, second, tolerance_of(torch.float32) if isinstance(cpu, float) else None):
            divergences.add("result", "", last, CallSite(), str(apart), apart)
    return compared


def _as_tensor(value: Any) -> Tensor | None:
    if isinstance(value, Tensor):
        return value
    if not isinstance(value, bool | int | float | complex | np.ndarray | np.generic):
        return None
    try:
        return torch.as_tensor(value)
    except (TypeError, RuntimeError):
        return None


def _copied(leaf: Any) -> Any:
    """What the program may not change any more."""
    if isinstance(leaf, Tensor):
        return leaf.detach().clone()
    return leaf.copy() if isinstance(leaf, np.ndarray) else leaf


Unseen = Callable[[], AbstractContextManager[None]]


@contextmanager
def _device(device: Device, engine: EngineName) -> Iterator[tuple[torch.device, str, Unseen]]:
    """The pretend device that was given, the real one where this machine has it, else a pretend one."""
    if isinstance(device, PretendDevice):
        _check_engine(device)
        yield device.device, device.engine, device.recorder.quiet
        return
    if session.current() is not None:
        do = "Pass what `with pretend(...) as it:` gave, device=it, or leave the block"
        raise ConfigError(describe("device", f"{device} while a pretend device is open", "that pretend device", do))
    wanted = torch.device(device)
    kinds = {torch.device(each.type) for each in available()}  # "cuda" where there is a "cuda:0"
    if wanted == torch.device("cpu") or wanted in available() or wanted in kinds:
        yield wanted, "real", nullcontext
        return
    with session.pretend(str(wanted), engine=engine) as pretended:
        _check_engine(pretended)
        yield pretended.device, pretended.engine, pretended.recorder.quiet


def _check_engine(pretended: PretendDevice) -> None:
    if pretended.engine != "native":
        do = "Install a C++ compiler; `assay devices` says what is missing"
        got = f"the engine {pretended.engine!r}, which hides the operators of its tensors"
        raise PretendError(describe("parity on a pretend device", got, "the engine 'native'", do))


@contextmanager
def _seeds_restored() -> Iterator[None]:
    """The random numbers of the caller go on as if nothing had been run."""
    python, numbers = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numbers)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


def checked(mode: str, relative: float | None, absolute: float | None) -> Tolerance | None:
    """The tolerance of the caller, if there is one; a ConfigError for another mode, or one half of a tolerance."""
    if mode not in MODES:
        raise ConfigError(describe("mode", repr(mode), " or ".join(map(repr, MODES)), f"Pass mode={MODES[0]!r}"))
    if (relative is None) != (absolute is None):
        got = f"relative={relative}, absolute={absolute}"
        raise ConfigError(describe("the tolerance", got, "both or neither", "Pass the other one, too"))
    return None if relative is None or absolute is None else Tolerance(relative, absolute, "given by the caller")
