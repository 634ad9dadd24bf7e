"""From what was seen to findings: which rule it breaks, how much it matters, and what fixes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay.audit.findings.finding import Finding
from assay.audit.findings.rulebook import SEVERITIES, AuditRule, rules
from assay.audit.watching.observations import NOT_MOVED, Observation, Origin
from assay.audit.watching.source_code import chosen_by, device_expression, expression, library_line, line_of, where
from assay.devices.capabilities import supports
from assay.devices.kinds import ACCELERATORS, HOST
from assay.pretend.events import Frame

HOT = ("update", "forward", "training_step", "validation_step", "test_step", "train_step", "eval_step")
LOOP = 3  # times that one line of a script waits before it is said to be in a loop
NAMES_A_DEVICE = ("foreign", "location", "unused", "disabled")


@dataclass(frozen=True)
class Verdict:
    """What an observation breaks: the rule, what happened, and a severity other than the rule's."""

    rule: str
    what: str
    severity: str = ""


def judge(observations: Iterable[Observation], roots: tuple[str, ...] = ()) -> list[Finding]:
    """The findings of some observations, merged by rule and line, most severe first.

    Findings point to the innermost line below ``roots``, the folders or files of the target.

    Example:
        >>> from assay.audit.watching.observations import MOVED, AuditRun
        >>> run = AuditRun("Accuracy", "mps", MOVED, "update", calls=2)
        >>> observation = Observation("sync", run, "synchronizes", "aten::nonzero", (Frame("a.py", 3, "f"),), count=4)
        >>> [(finding.rule, finding.where, finding.what) for finding in judge([observation])]
        [('device-sync', 'a.py:3', 'synchronizes, 2 times an update')]
    """
    merged: dict[tuple[str, str, int], Finding] = {}
    for observation in _merge_copies(list(observations)):
        verdict = JUDGES[observation.kind](observation)
        if verdict is None:
            continue
        line = where(observation.stack, roots)
        for finding in (_finding(observation, verdict, line), *_of_origins(observation, line)):
            key = (finding.rule, finding.file, finding.line)
            merged[key] = _merge(merged[key], finding) if key in merged else finding
    return sorted(merged.values(), key=lambda each: (-SEVERITIES.index(each.severity), each.file, each.line, each.rule))


def _of_origins(observation: Observation, line: Frame | None) -> Iterator[Finding]:
    """Where a tensor is on the wrong device because a line names one, or asks for one kind: one more finding."""
    if observation.kind not in ("devices", "result", "state"):
        return
    kind, _, index = observation.run.device.partition(":")
    for origin in observation.origins:
        source = Frame(origin.file, origin.line, "")
        here = line is not None and (line.file, line.line) == (source.file, source.line)
        if index not in ("", "0") and not here and device_expression(source, kind):
            what = f"{origin.what}, by its name; the device in use is {observation.run.device}"
            foreign = replace(observation, kind="foreign", operator="")
            yield _finding(foreign, Verdict("hard-coded-device", what), source)
    lines = [Frame(origin.file, origin.line, "") for origin in observation.origins] + [each for each in (line,) if each]
    for other in (each for each in ACCELERATORS if each != kind and not observation.run.replaced):
        chosen = next((chosen for each in lines if (chosen := chosen_by(each, other))), None)
        if chosen is not None:
            what = f"The line asks for {other}; on {observation.run.device} it chooses the branch for the CPU"
            question = replace(observation, kind="unused", operator=f"torch.Tensor.is_{other}")
            yield _finding(question, Verdict("hard-coded-device", what, "warning"), chosen)


def _merge_copies(observations: list[Observation]) -> Iterator[Observation]:
    """A tensor that one line takes from the device to the CPU and on to another one has gone between devices.

    One that a line takes from the CPU to another device and on to the device under test ends where it should.
    """
    copies = [each for each in observations if each.kind == "copy"]
    ended = {
        (each.run.subject, each.source, *each.stack[:1])
        for each in copies
        if each.source != HOST and each.target == each.run.device and each.stack
    }
    left = {
        (each.run.subject, *each.stack[:1])
        for each in copies
        if (each.source, each.target) == (each.run.device, HOST) and each.stack
    }
    for each in observations:
        elsewhere = each.kind == "copy" and each.source == HOST and each.target not in (HOST, each.run.device)
        if elsewhere and (each.run.subject, each.target, *each.stack[:1]) in ended:
            continue
        detour = elsewhere and (each.run.subject, *each.stack[:1]) in left
        yield replace(each, source=each.run.device) if detour else each


def _finding(observation: Observation, verdict: Verdict, line: Frame | None) -> Finding:
    rule, run = rules()[verdict.rule], observation.run
    inside, code = (_inside(observation, line), line_of(line)) if line else ("", "")
    at = line or Frame("", 0, "")
    named = observation.kind in NAMES_A_DEVICE  # the line itself names a device
    below = library_line(observation.stack, line) if line and not named else None
    of_library = (
        below is not None and rule.id == "device-sync" and run.phase == "script"
    )  # nothing to change in the script
    inside = "" if below else inside
    beneath = (Origin("a library does it", below.file, below.line),) if below else ()
    return Finding(
        rule=rule.id,
        severity=verdict.severity or ("note" if observation.minor or of_library else rule.severity),
        file=at.file,
        line=at.line,
        function=at.function,
        code=code,
        what=verdict.what,
        why=rule.why,
        fix=_fix(rule, observation, inside, code if inside or below is None else ""),
        devices=(run.device,),
        usages=(run.usage,),
        subjects=(run.subject,),
        operators=tuple(filter(None, [observation.operator])),
        phases=(run.phase,),
        count=observation.count,
        origins=tuple(x for x in (*observation.origins, *beneath) if (x.file, x.line) != (at.file, at.line)),
        replaced=run.replaced,
    )


def _inside(observation: Observation, line: Frame) -> str:
    """The expression of the line that did it."""
    if observation.operator.endswith("is_available") or ".is_" in observation.operator:
        return expression(line, "::is_available")
    if observation.kind in NAMES_A_DEVICE:
        kinds = [each for each in ACCELERATORS if each in re.split(r"\W|_", observation.operator)] or ACCELERATORS
        named = next(filter(None, (device_expression(line, kind) for kind in kinds)), "")
        return named or expression(line, f"::{observation.operator.rpartition('.')[2]}")
    return expression(line, observation.operator, waits=observation.kind == "sync")


def _fix(rule: AuditRule, observation: Observation, inside: str, code: str) -> str:
    """What to change: for the operands on another device, for the operator, for the expression, or in general.

    Of a line with several statements the expression is not known; a fix for this very error is then that of the line.
    """
    if rule.id in ("mixed-devices", "state-elsewhere") and observation.unregistered:
        names = " and ".join(f"`{name}`" for name in observation.unregistered)
        return f"Register {names} with register_buffer(name, tensor): .to() moves buffers, and not plain attributes"
    if rule.id == "mixed-devices" and (strays := _strays(observation)):
        names = " and ".join(f"`{name}`" for name in strays)
        first = f"Make {names} on the device of the inputs (device=...), or bring it there with .to(...)"
        moved = "; or move the object to the device before it is fed" if observation.run.usage == NOT_MOVED else ""
        return first + moved
    if rule.id == "device-sync" and observation.run.usage == NOT_MOVED and observation.target == HOST:
        return "Move the object to the device before it is fed, so that nothing goes to the CPU"
    if specific := rule.fix_of.get(_way(rule, observation)):
        return specific.format(expression=inside or code) if inside or code else rule.fix
    return rule.fix_at.format(expression=inside) if inside else rule.fix


def _way(rule: AuditRule, observation: Observation) -> str:
    """What a fix is looked up by: the operator, of an error what it says, or of a copy where it goes."""
    if observation.kind in ("error", *NAMES_A_DEVICE):
        return next((part for part in rule.fix_of if part in f"{observation.operator} {observation.what}"), "")
    if not observation.source:
        return observation.operator
    if observation.source != HOST:
        return "to host"
    return "number to device" if observation.elements == 1 else "to device"


def _strays(observation: Observation) -> list[str]:
    """The operands that are not on the device under test."""
    device = observation.run.device if ":" in observation.run.device else f"{observation.run.device}:0"
    return [name for name, place in observation.operands if not place.endswith(f" on {device}")]


def _merge(one: Finding, other: Finding) -> Finding:
    severest = max(one, other, key=lambda each: SEVERITIES.index(each.severity))  # the first, where they are equal
    lists = ("devices", "usages", "subjects", "operators", "phases", "origins")
    union = {name: tuple(dict.fromkeys(getattr(one, name) + getattr(other, name))) for name in lists}
    both = one.replaced and other.replaced
    return replace(severest, count=one.count + other.count, replaced=both, **union)  # type: ignore[arg-type]


def _refused(rule: str) -> Callable[[Observation], Verdict]:
    """A refusal is an error, but for a metric that nobody moved: it says so at once, and moving it is the way out."""

    def verdict_of(observation: Observation) -> Verdict:
        text = observation.what.strip().partition("\n")[0] or f"{observation.operator} was refused"
        if observation.operands:
            text += "\n" + ", ".join(f"`{name}` is {place}" for name, place in observation.operands)
        if not observation.raised:
            return Verdict(rule, text + "\n(the code handled the error)", "note")
        loud = rule == "mixed-devices" and observation.run.usage == NOT_MOVED
        return Verdict(rule, text, "warning" if loud else "error")

    return verdict_of


def _sync(observation: Observation) -> Verdict | None:
    """A wait matters where it is paid in every step: in an update, in functions of that kind, and in loops."""
    name = observation.what or f"{observation.operator} synchronizes with the device"
    if observation.run.phase == "update":
        each = observation.count / max(observation.run.calls, 1)
        return Verdict("device-sync", f"{name}, {_times(each)} an update")
    if observation.run.phase != "script":
        return None
    if any(frame.function.rpartition(".")[2] in HOT for frame in observation.stack):
        return Verdict("device-sync", f"{name}, {_times(observation.count)} in the run")
    if observation.count < LOOP or observation.source == HOST:  # batches, and parameters, must come from the CPU
        return None
    return Verdict("device-sync", f"{name}, {_times(observation.count)} in the run", "note")


def _times(count: float) -> str:
    return {1: "once", 2: "2 times"}.get(count, f"{count:.3g} times")  # type: ignore[call-overload, no-any-return]


def _copy(observation: Observation) -> Verdict | None:
    device, source, target = observation.run.device, observation.source, observation.target
    kind, _, index = device.partition(":")
    # a script may well use the default device on purpose; a metric whose inputs are elsewhere may not
    script = observation.run.phase == "script"
    sources = {device} if script else {device, HOST}
    if script and observation.named:
        sources = set()
    if index not in ("", "0") and target == f"{kind}:0" and source in sources:
        return Verdict("moved-to-default-device", f"A tensor goes from {source} to {target}, the default")
    there = source if target == HOST else target
    unsafe = target == HOST or supports(there, "non_blocking_copies").supported is False
    if unsafe and observation.non_blocking and not observation.waited and source != target:
        return Verdict("non-blocking-copy", f"A copy from {source} to {target} does not wait")
    return None


def _as(rule: str, severity: str = "", what: str = "") -> Callable[[Observation], Verdict]:
    return lambda observation: Verdict(rule, observation.what or observation.operator + what, severity)


JUDGES: dict[str, Callable[[Observation], Verdict | None]] = {
    "devices": _refused("mixed-devices"),
    "dtype": _refused("dtype-missing"),
    "operator": _refused("operator-missing"),
    "deterministic": _refused("nondeterministic"),
    "error": _refused("device-error"),
    "sync": _sync,
    "copy": _copy,
    "fallback": _as("operator-fallback", what=" runs on the CPU"),
    "nondeterministic": _as("nondeterministic", what=" adds in any order"),
    "result": _as("result-elsewhere"),
    "state": _as("state-elsewhere"),
    "value": _as("unseeded"),
    "counter": _as("float32-counter"),
    "collective": _as("cpu-collective"),
    "foreign": _as("hard-coded-device"),
    "location": _as("map-location"),
    "unused": _as("hard-coded-device", "warning"),
    "disabled": _as("hard-coded-device", "warning"),
}


def relative(file: str, base: Path) -> str:
    """A path for display: from the working folder where it lies below, else from the packages' folder, else whole.

    Example:
        >>> relative("/home/me/work/a/b.py", Path("/home/me/work"))
        'a/b.py'
        >>> relative("/venv/lib/site-packages/torchmetrics/metric.py", Path("/home/me/work"))
        'torchmetrics/metric.py'
    """
    for part in ("/site-packages/", "/dist-packages/"):
        if part in file:
            return file.rpartition(part)[2]
    path = Path(file)
    return str(path.relative_to(base)) if path.is_relative_to(base) else file
