"""Runs one metric on the CPU and on a pretend device, in the ways people use metrics, and looks at what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from assay.audit.cases.case import Case
from assay.audit.cases.probes import collectives, counters
from assay.audit.tensor_trees import for_device, is_module, mapped, seed, tensors_of, values_of
from assay.audit.watching.collect import Collector
from assay.audit.watching.hard_coded import watch_availability
from assay.audit.watching.observations import MOVED, AuditRun, Observation
from assay.audit.watching.origins import Origins
from assay.audit.watching.replaced_devices import replace_devices
from assay.audit.watching.source_code import method_line, state_line
from assay.pretend.events import Frame
from assay.pretend.session import EngineName, PretendDevice, pretend

DEVICE_RANDOM_STATE = 16  # bytes of torch.cuda.get_rng_state(): a seed and an offset
CLOSE = 1e-4  # relative: what float32 in place of float64 explains is no finding


@dataclass(frozen=True)
class Reference:
    """What a case gives on the CPU: the value, as numbers by path, and whether a second run gives it again."""

    value: dict[str, Tensor]
    repeats: bool


def exercise(case: Case, device: str, usages: tuple[str, ...], engine: EngineName, collector: Collector) -> None:
    """Run a case on the CPU, then on the pretend device in each usage, and send what was seen to the collector."""
    if case.why_not:
        collector.unrun(AuditRun(case.name, "", "", ""), case.why_not, known=True)
        return
    batches = for_device(case.batches, device)
    try:
        reference = _reference(case, batches)
    except Exception as error:
        what = f"does not run on the CPU: {type(error).__name__}: {error}"
        collector.unrun(AuditRun(case.name, "", "", ""), what)
        return
    for name, metric, what in counters(case, batches):
        run = AuditRun(case.name, device, usages[0], "update", len(batches))
        collector.add(Observation("counter", run, what, stack=_state_frames(name, metric)))
    with pretend(device, engine=engine) as pretended:
        pretended.recorder.listeners.append(collector.event)
        collector.engine = pretended.engine
        for usage in (each for each in usages if each in case.usages):
            _in_one_usage(_Exercise(case, batches, device, pretended, collector, usage), reference)


def _in_one_usage(one: _Exercise, reference: Reference) -> None:
    """Run it, and again where that tells more: what follows a hard-coded device, where a stray tensor was made."""
    collector = one.collector
    collector.named = collector.strayed = False
    with watch_availability(one.pretended.type, lambda *_: None, collector.disabled):
        one.go(reference)
    named = collector.named
    if named or (collector.strayed and one.usage == MOVED):
        with (
            replace_devices(one.pretended, collector.named_again) if named else nullcontext(),
            Origins() as collector.origins,
        ):
            replace(one, replaced=named).go(reference)
        collector.origins = None


def _reference(case: Case, batches: tuple[Any, ...]) -> Reference:
    values = []
    for _ in range(2):
        seed()
        metric = case.build()
        for batch in batches:
            case.update(metric, mapped(batch, Tensor.clone))
        values.append(values_of(case.compute(metric)))
    return Reference(values[0], _furthest(*values) is None)


class _StoppedError(Exception):
    """A phase ended early, and the collector has said why."""


@dataclass
class _Exercise:
    case: Case
    batches: tuple[Any, ...]
    device: str
    pretended: PretendDevice
    collector: Collector
    usage: str
    replaced: bool = False  # other devices that the metric names are taken for this one

    def go(self, reference: Reference) -> None:
        """Build, move, update and compute; stop at the first error, which the collector explains."""
        with self._quietly():
            batches = mapped(self.batches, lambda tensor: tensor.to(self.pretended.device))
        with suppress(_StoppedError):
            seed()
            metric = self._phase("build", self.case.build)
            if self.usage == MOVED:
                metric = self._phase("move", lambda: self.case.move(metric, self.pretended.device))
            self._update(metric, batches)
            value = self._phase("compute", lambda: self.case.compute(metric))
            with self._quietly():
                self._look(metric, value, reference)
            if self.usage == MOVED and self.collector.origins is None:
                self._sync(batches)

    def _update(self, metric: Any, batches: Sequence[Any]) -> None:
        """The first update may make the states, and pay for it once: what the others do is done in every step."""
        first = min(1, len(batches) - 1)
        self._phase("first update", lambda: self._feed(metric, batches[:first]))
        self._phase("update", lambda: self._feed(metric, batches[first:]), len(batches) - first)

    def _feed(self, metric: Any, batches: Sequence[Any]) -> None:
        for batch in batches:
            self.case.update(metric, batch)

    def _phase(self, phase: str, call: Callable[[], Any], calls: int = 1) -> Any:
        try:
            with self.collector.phase(self._run(phase, calls)):
                return call()
        except Exception as error:
            raise _StoppedError from error  # the collector has explained it

    def _run(self, phase: str, calls: int = 1) -> AuditRun:
        return AuditRun(self.case.name, self.device, self.usage, phase, calls, self.replaced)

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        with self.pretended.recorder.quiet(), torch.no_grad():
            yield

    def _look(self, metric: Any, value: Any, reference: Reference) -> None:
        if self.usage == MOVED:
            self._look_at_result(metric, value)
            self._look_at_states(metric)
        self._look_at_value(metric, values_of(value), reference)

    def _look_at_result(self, metric: Any, value: Any) -> None:
        if _keeps_lists_on_cpu(metric):
            return
        expected = torch.device("cpu") if self.case.computes_on_cpu else self.pretended.device
        for path, tensor in tensors_of(value).items():
            if tensor.device != expected:
                name = f"The result{' ' + path if path else ''}"
                self._add("result", metric, f"{name} is on {tensor.device}, the inputs are on {expected}", tensor)

    def _look_at_states(self, metric: Any) -> None:
        for path, tensor in tensors_of(self.case.states(metric)).items():
            if _is_random_state(tensor) or (_keeps_lists_on_cpu(metric) and "[" in path):
                continue
            if tensor.device != self.pretended.device:
                what = f"The state `{path}` is on {tensor.device}, the inputs are on {self.pretended.device}"
                frames = _state_frames(path, metric)
                plain = (f"self.{path}",) if is_module(metric) and path in vars(metric) else ()
                observation = Observation("state", self._run("update"), what, stack=frames, unregistered=plain)
                self.collector.add(replace(observation, origins=self.collector.origin(tensor, path)))

    def _look_at_value(self, metric: Any, value: dict[str, Tensor], reference: Reference) -> None:
        if not reference.repeats:
            what = "Two runs on the CPU, with the same inputs and seeds, give different values"
            self._add("value", metric, what, None)
        elif apart := _furthest(value, reference.value):
            self._add("value", metric, f"With the same inputs and seeds: {apart}", None)

    def _add(self, kind: str, metric: Any, what: str, tensor: Tensor | None) -> None:
        minor = tensor is not None and not tensor.dim()  # 0-dimensional CPU tensors may meet those of a device
        frame = method_line(type(metric).__mro__, "compute")
        observation = Observation(kind, self._run("compute"), what, stack=(frame,) if frame else (), minor=minor)
        origins = self.collector.origin(tensor, "") if tensor is not None else ()
        self.collector.add(replace(observation, origins=origins))

    def _sync(self, batches: Sequence[Any]) -> None:
        """Read a fresh one (values that were read are kept) as one of two processes, whose backend is the device's."""
        with self.pretended.recorder.quiet():
            metric = self.case.move(self.case.build(), self.pretended.device)
            self._feed(metric, batches)
        try:
            wrong_places = collectives(self.case, metric, self.pretended)
        except Exception as error:
            why = f"cannot be read as by one of two processes here: {type(error).__name__}: {error}"
            self.collector.unrun(self._run("sync"), why, known=True)
            return
        for stack, what in wrong_places:
            self.collector.add(Observation("collective", self._run("sync"), what, stack=stack))


def _keeps_lists_on_cpu(metric: Any) -> bool:
    """Whether its user asked for samples in host memory (TorchMetrics), so that its value may be there, too."""
    return getattr(metric, "compute_on_cpu", False) is True


def _is_random_state(tensor: Tensor) -> bool:
    """Whether it is the state of a generator, which torch gives on the CPU, of the CPU's or of a device's."""
    sizes = [(torch.get_rng_state().numel(),), (DEVICE_RANDOM_STATE,)]
    return tensor.dtype == torch.uint8 and tensor.shape in sizes


def _state_frames(path: str, metric: Any) -> tuple[Frame, ...]:
    owner, steps = metric, path.partition("[")[0].split(".")
    while len(steps) > 1:
        inner, rest = _inner(owner, steps)
        if not hasattr(inner, "__dict__"):
            break  # a tensor in a dictionary, not a metric in a metric
        owner, steps = inner, rest
    frame = state_line(type(owner).__mro__, steps[0]) or method_line(type(metric).__mro__, "__init__")
    return (frame,) if frame else ()


def _inner(owner: Any, steps: list[str]) -> tuple[Any, list[str]]:
    """What the first step leads to, through a dictionary of metrics, too, and the steps from there."""
    inner, rest = getattr(owner, steps[0], None), steps[1:]
    if isinstance(inner, Mapping) and len(rest) > 1:
        return next((value for key, value in inner.items() if str(key) == rest[0]), None), rest[1:]
    return inner, rest


def _furthest(one: dict[str, Tensor], other: dict[str, Tensor]) -> str | None:
    """Where two values differ by more than their dtypes explain."""
    if one.keys() != other.keys():
        return f"the parts of the value are {sorted(one)}, on the CPU {sorted(other)}"
    for path, first in one.items():
        second = other[path]
        name = f"{path} " if path else ""
        if first.shape != second.shape:
            return f"{name}has the shape {tuple(first.shape)}, on the CPU {tuple(second.shape)}"
        apart = ~torch.isclose(first, second, rtol=CLOSE, atol=1e-6, equal_nan=True)
        if apart.any():
            at = int(apart.flatten().nonzero()[0])
            return f"{name}{first.flatten()[at].item():.7g}, on the CPU {second.flatten()[at].item():.7g}"
    return None
