"""The process that runs a target on one pretend device and writes what it sees, a line at a time.

Its own process, so that a crash, an endless loop or ``sys.exit`` ends the run of the target and not the audit.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from assay._records import Record
from assay.audit.running.targets import Target, find_cases, parse, run_program, runs_cases
from assay.audit.tensor_trees import is_tensor
from assay.audit.watching.collect import Collector
from assay.audit.watching.observations import AS_IT_IS, COMPILING, AuditRun, Observation, to_line
from assay.errors import AssayError
from assay.pretend.events import Event, Frame
from assay.pretend.native_engine.build import compiles_first
from assay.pretend.session import PretendDevice, pretend

HOW = "Let it choose by torch.accelerator, take it from its arguments (--args), or define audit(device)"
REPLACED = "other devices that the script names are taken for the one there is"
TRACED = "tensors on the wrong device are followed to where they were made; the native engine goes on after refusals"
CONTINUED = "the script goes on after what is refused"
MAX_EVENTS = 10_000  # events of a script that are kept in memory: they are sent at once


class Job(Record, schema="assay.audit-job/1"):
    """What a worker is to do: the target, one device, the usages, and how many cases were done before it.

    ``second`` is set for further runs of a script: :data:`REPLACED`, :data:`TRACED` or :data:`CONTINUED`.
    """

    target: str
    device: str
    usages: tuple[str, ...]
    engine: str
    arguments: tuple[str, ...]
    first: int = 0
    messages: str = ""
    second: str = ""
    inputs: tuple[str, ...] = ()


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
    """Open the device once, so that a missing engine is reported once, and that it is compiled is reported, too."""
    if compiles_first(job.engine):
        send(to_line("wait", why=COMPILING))
    with pretend(job.device, engine=job.engine):  # type: ignore[arg-type]
        pass


def work(job: Job, target: Target, collector: Collector) -> None:
    """Run the cases of the target, or its program."""
    (_run_cases if runs_cases(target) else _run_program)(job, target, collector)


def _run_cases(job: Job, target: Target, collector: Collector) -> None:
    import torch

    from assay.audit.running.exercise import exercise

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


def _run_program(job: Job, target: Target, collector: Collector) -> None:
    """Run code that finds the device by itself, or takes it; its module may do so while it is imported."""
    with pretend(job.device, engine=job.engine) as pretended:  # type: ignore[arg-type]

        def take(event: Event) -> None:
            if len(pretended.recorder.events) > MAX_EVENTS:
                del pretended.recorder.events[1:]
            collector.event(event)

        collector.send(to_line("plan", total=1))
        collector.send(to_line("begin", number=0, subject=target.text))
        pretended.recorder.listeners.append(take)
        run = AuditRun(target.text, job.device, AS_IT_IS, "script", replaced=job.second == REPLACED)
        outcome: object = None
        availability: dict[str, tuple[Frame, ...]] = {}
        try:
            with _observing(job, pretended, collector, availability), collector.phase(run):
                outcome = run_program(target, pretended.device, job.arguments)
        except SystemExit as ended:
            outcome = ended  # with the script's variables
            if ended.code not in (None, 0):
                collector.unrun(run, f"ended itself with exit code {ended.code}")
        except Exception as error:
            outcome = error  # the collector has explained it
        tensors = (thing for thing in gc.get_objects() if is_tensor(thing))  # a script's variables are still alive
        alive = any(str(tensor.device).startswith(pretended.type) for tensor in tensors)
        used = pretended.used or isinstance(outcome, Exception) or alive
        own = availability.pop(pretended.type, None)
        if not used and own is None and (other := next(iter(availability), None)):
            what = f"the program asks for {other}, and uses the CPU where that is not there: {job.device} is not used"
            collector.add(Observation("unused", run, what, f"torch.{other}.is_available", availability[other]))
        elif not used:
            collector.unrun(run, f"no tensor was seen on {pretended.device}: does it use that device? {HOW}")
        del outcome
    collector.send(to_line("end", number=0))
    if collector.named and job.second != REPLACED:
        collector.send(to_line("again", how=REPLACED))
    elif not job.second and (collector.strayed or collector.stopped):
        collector.send(to_line("again", how=TRACED))
    elif job.second == TRACED and not collector.goes_on:
        collector.send(to_line("again", how=CONTINUED))


@contextmanager
def _observing(
    job: Job, pretended: PretendDevice, collector: Collector, availability: dict[str, tuple[Frame, ...]]
) -> Iterator[None]:
    """Observations that are not events: in a first run where devices are asked for, in a second one what follows."""
    from assay.audit.watching.going_on import GoingOn
    from assay.audit.watching.hard_coded import watch_availability
    from assay.audit.watching.origins import Origins
    from assay.audit.watching.replaced_devices import over_gloo, replace_devices
    from assay.audit.watching.uncompiled import without_code

    with ExitStack() as opened:
        if pretended.engine == "native":
            opened.enter_context(without_code(lambda why: collector.unrun(collector.run, why, known=True)))
        if job.second != REPLACED:
            opened.enter_context(over_gloo(pretended.type))
        if job.second == REPLACED:
            opened.enter_context(replace_devices(pretended, collector.named_again))
        else:
            opened.enter_context(watch_availability(pretended.type, availability.setdefault, collector.disabled))
        if job.second:
            native = pretended.engine == "native"  # with the Python engine torch's C code may fail under both modes
            if native or job.second == TRACED:
                collector.origins = opened.enter_context(Origins())
            if native or job.second != TRACED:
                collector.goes_on = True
                opened.enter_context(GoingOn(pretended, collector.explained, collector.reported))
        yield


if __name__ == "__main__":
    main()
