"""The process that runs a target on one pretend device and writes what it sees, a line at a time.

Its own process, so that a crash, an endless loop or ``sys.exit`` ends the run of the target and not the audit.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import runpy
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay.audit.collect import Collector
from assay.audit.observations import AS_IT_IS, AuditRun, Observation, to_line
from assay.audit.targets import Target, find_cases, hooks, is_module, load, named, names_function, parse, subjects_of
from assay.audit.tensor_trees import is_tensor
from assay.errors import AssayError
from assay.pretend.events import Event, Frame
from assay.pretend.native_engine.build import built, compiler
from assay.pretend.session import PretendDevice, pretend

HOW = "Let it choose by torch.accelerator, take it from its arguments (--args), or define audit(device)"
REPLACED = "other devices that the script names are taken for the one there is"
TRACED = "tensors on the wrong device are followed to where they were made"
KEPT = 10_000  # events of a script that are kept in memory: they are sent at once


@dataclass(frozen=True)
class Job:
    """What a worker is to do: the target, one device, the usages, and how many cases were done before it.

    ``second`` is set for the second run of a script: :data:`REPLACED` or :data:`TRACED`.
    """

    target: str
    device: str
    usages: tuple[str, ...]
    engine: str
    arguments: tuple[str, ...]
    first: int
    messages: str
    second: str = ""
    inputs: tuple[str, ...] = ()

    def to_json(self) -> str:
        """The job as a line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Job:
        """The job of :meth:`to_json`."""
        plain = json.loads(text)
        return cls(**plain | {name: tuple(plain[name]) for name in ("usages", "arguments", "inputs")})


def main() -> None:
    """Do the job that the first argument describes."""
    job = Job.from_json(sys.argv[1])
    file = os.open(job.messages, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def send(line: str) -> None:
        os.write(file, line.encode())  # at once: what follows may end the process

    target = parse(job.target)
    try:
        _prepare(job, send)
        work(job, target, Collector(send, target.roots()))
        send(to_line("done"))
    except AssayError as error:
        send(to_line("failed", why=str(error)))


def _prepare(job: Job, send: Callable[[str], object]) -> None:
    """Open the device once, so that an engine that cannot be had is said once, and compiling it is said at all."""
    if job.engine != "python" and compiler() and not built():
        send(to_line("wait", why="compiling the engine"))
    with pretend(job.device, engine=job.engine):  # type: ignore[arg-type]
        pass


def work(job: Job, target: Target, collector: Collector) -> None:
    """Run the target in the way that fits it."""
    if target.library or (not target.name and "audit_cases" in hooks(target)):
        _run_cases(job, target, collector)
    elif target.name:
        _run_name(job, target, collector)
    elif "audit" in hooks(target):
        _run_in_the_open(job, target, collector, lambda device: load(target).audit(device))
    elif (target.file is None or target.only_defines()) and _has_metrics(target):
        _run_cases(job, target, collector)
    else:
        _run_in_the_open(job, target, collector, lambda device: _run_script(target, job))


def _has_metrics(target: Target) -> bool:
    if target.module.rpartition(".")[2] == "__main__":
        return False
    return bool(subjects_of(load(target)))


def _run_name(job: Job, target: Target, collector: Collector) -> None:
    if not names_function(target) and _is_case(named(target, load(target))):
        _run_cases(job, target, collector)
        return
    _run_in_the_open(job, target, collector, lambda device: _call(named(target, load(target)), device))


def _is_case(thing: Any) -> bool:
    return inspect.isclass(thing) or is_module(thing)


def _call(function: Callable[..., Any], device: Any) -> Any:
    takes = [each for each in inspect.signature(function).parameters.values() if each.default is each.empty]
    return function(device) if takes else function()


def _run_cases(job: Job, target: Target, collector: Collector) -> None:
    import torch

    from assay.audit.exercise import exercise

    torch.set_num_threads(1)  # the devices are audited side by side
    cases = list(find_cases(target, job.inputs))
    collector.send(to_line("plan", total=len(cases)))
    for number, case in enumerate(cases[job.first :], job.first):
        collector.send(to_line("begin", number=number, subject=case.name))
        try:
            exercise(case, job.device, job.usages, job.engine, collector)  # type: ignore[arg-type]
        except AssayError as error:
            collector.unrun(AuditRun(case.name, job.device, "", ""), str(error))
        except Exception as error:
            what = f"the audit itself failed: {type(error).__name__}: {error}"
            collector.unrun(AuditRun(case.name, job.device, "", ""), what)
        collector.send(to_line("end", number=number))


def _run_in_the_open(job: Job, target: Target, collector: Collector, call: Callable[[Any], object]) -> None:
    """Run code that finds the device by itself, or is given it; its module may do so while it is imported."""
    subject = target.text
    with pretend(job.device, engine=job.engine) as pretended:  # type: ignore[arg-type]

        def take(event: Event) -> None:
            if len(pretended.recorder.events) > KEPT:
                del pretended.recorder.events[1:]
            collector.event(event)

        collector.send(to_line("plan", total=1))
        collector.send(to_line("begin", number=0, subject=subject))
        pretended.recorder.listeners.append(take)
        run = AuditRun(subject, job.device, AS_IT_IS, "script", replaced=job.second == REPLACED)
        kept: object = None
        asked: dict[str, tuple[Frame, ...]] = {}
        try:
            with _looking(job, pretended, collector, asked), collector.phase(run):
                kept = call(pretended.device)
        except SystemExit as ended:
            kept = ended  # with the script's variables
            if ended.code not in (None, 0):
                collector.unrun(run, f"ended itself with exit code {ended.code}")
        except Exception as error:
            kept = error  # the collector has explained it
        used = pretended.events or isinstance(kept, Exception) or _has_tensors(pretended.type)
        own = asked.pop(pretended.type, None)
        if not used and own is None and (other := next(iter(asked), None)):
            what = f"the program asks for {other}, and uses the CPU where that is not there: {job.device} is not used"
            collector.add(Observation("unused", run, what, f"torch.{other}.is_available", asked[other]))
        elif not used:
            collector.unrun(run, f"no tensor was seen on {pretended.device}: does it use that device? {HOW}")
        del kept
    collector.send(to_line("end", number=0))
    if not job.second and (collector.named or collector.strayed):
        collector.send(to_line("again", how=REPLACED if collector.named else TRACED))


@contextmanager
def _looking(
    job: Job, pretended: PretendDevice, collector: Collector, asked: dict[str, tuple[Frame, ...]]
) -> Iterator[None]:
    """What is looked for besides events: in a first run where devices are asked for, in a second one what follows."""
    from assay.audit.hard_coded import watch_availability
    from assay.audit.origins import Origins
    from assay.audit.replaced_devices import replace_devices
    from assay.audit.uncompiled import without_code

    with ExitStack() as opened:
        if pretended.engine == "native":
            opened.enter_context(without_code(lambda why: collector.unrun(collector.run, why, known=True)))
        if not job.second:
            opened.enter_context(watch_availability(pretended.type, asked.setdefault, collector.disabled))
        else:
            if job.second == REPLACED:
                opened.enter_context(replace_devices(pretended, collector.named_again))
            collector.origins = opened.enter_context(Origins())
        yield


def _has_tensors(kind: str) -> bool:
    """Whether a tensor on that kind of device is alive: a script's variables still are."""
    return any(is_tensor(thing) and str(thing.device).startswith(kind) for thing in gc.get_objects())


def _run_script(target: Target, job: Job) -> dict[str, Any]:
    """As ``python file.py`` does: its folder is where it imports from, and its name is ``__main__``."""
    sys.argv = [str(target.file or target.module), *job.arguments]
    if target.file is None:
        return runpy.run_module(target.module, run_name="__main__", alter_sys=True)
    sys.path.insert(0, str(Path(target.file).parent))
    return runpy.run_path(str(target.file), run_name="__main__")


if __name__ == "__main__":
    main()
