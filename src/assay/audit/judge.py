"""From what was seen to findings: which rule it breaks, how much it matters, and what fixes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from assay.audit.finding import Finding
from assay.audit.observations import NOT_MOVED, Observation
from assay.audit.rulebook import SEVERITIES, AuditRule, rules
from assay.audit.source import chosen_by, device_expression, expression, line_of, where
from assay.pretend.events import Frame
from assay.pretend.session import DEVICES as KINDS_OF_DEVICE

HOT = ("update", "forward", "training_step", "validation_step", "test_step", "train_step", "eval_step")
LOOP = 3  # times that one line of a script waits before it is said to be in a loop
HOST = "cpu"
NAMES_A_DEVICE = ("foreign", "location", "unused", "disabled")


@dataclass(frozen=True)
class Verdict:
    """What a sighting breaks: the rule, what happened in words, and a severity other than the rule's."""

    rule: str
    what: str
    severity: str = ""


def judge(sightings: Iterable[Observation], roots: tuple[str, ...] = ()) -> list[Finding]:
    """The findings of what was seen, merged by rule and line, the gravest first.

    Args:
        sightings: what was seen.
        roots: the folders or files of the target; findings point to the innermost line below them.

    Returns:
        The findings.

    Example:
        >>> from assay.audit.observations import MOVED, AuditRun
        >>> run = AuditRun("Accuracy", "mps", MOVED, "update", calls=2)
        >>> seen = Observation("sync", run, "synchronizes", "aten::nonzero", (Frame("a.py", 3, "f"),), count=4)
        >>> [(finding.rule, finding.where, finding.what) for finding in judge([seen])]
        [('host-sync', 'a.py:3', 'synchronizes, 2 times an update')]
    """
    merged: dict[tuple[str, str, int], Finding] = {}
    for seen in _joined(list(sightings)):
        verdict = JUDGES[seen.kind](seen)
        if verdict is None:
            continue
        line = where(seen.stack, roots)
        for found in (_finding(seen, verdict, line), *_of_origins(seen, line)):
            key = (found.rule, found.file, found.line)
            merged[key] = _merge(merged[key], found) if key in merged else found
    return sorted(merged.values(), key=_order)


def _of_origins(seen: Observation, line: Frame | None) -> Iterator[Finding]:
    """Where a tensor is on the wrong device because a line names one, or asks for one kind: one more finding."""
    if seen.kind not in ("devices", "result", "state"):
        return
    kind, _, index = seen.run.device.partition(":")
    for origin in seen.origins:
        made = Frame(origin.file, origin.line, "")
        here = line is not None and (line.file, line.line) == (made.file, made.line)
        if index not in ("", "0") and not here and device_expression(made, kind):
            what = f"{origin.what}, by its name; the device in use is {seen.run.device}"
            yield _finding(replace(seen, kind="foreign", operator=""), Verdict("hard-coded-device", what), made)
    lines = [Frame(origin.file, origin.line, "") for origin in seen.origins] + [each for each in (line,) if each]
    for other in (each for each in KINDS_OF_DEVICE if each != kind and not seen.run.replaced):
        chosen = next((chosen for each in lines if (chosen := chosen_by(each, other))), None)
        if chosen is not None:
            what = f"The line asks for {other}; on {seen.run.device} it chooses the branch for the CPU"
            asked = replace(seen, kind="unused", operator=f"torch.Tensor.is_{other}")
            yield _finding(asked, Verdict("hard-coded-device", what, "warning"), chosen)


def _joined(sightings: list[Observation]) -> Iterator[Observation]:
    """A tensor that one line takes from the device to the CPU and on to another one has gone between devices."""
    left = {
        (seen.run.subject, seen.stack[0])
        for seen in sightings
        if (seen.kind, seen.source, seen.target) == ("copy", seen.run.device, HOST) and seen.stack
    }
    for seen in sightings:
        detour = (seen.kind, seen.source) == ("copy", HOST) and (seen.run.subject, *seen.stack[:1]) in left
        yield replace(seen, source=seen.run.device) if detour and seen.target not in (HOST, seen.run.device) else seen


def _order(found: Finding) -> tuple[int, str, int, str]:
    return -SEVERITIES.index(found.severity), found.file, found.line, found.rule


def _finding(seen: Observation, verdict: Verdict, line: Frame | None) -> Finding:
    rule = rules()[verdict.rule]
    inside = _inside(seen, line) if line else ""
    return Finding(
        rule.id,
        verdict.severity or ("note" if seen.minor else rule.severity),
        line.file if line else "",
        line.line if line else 0,
        line.function if line else "",
        line_of(line) if line else "",
        verdict.what,
        rule.why,
        _fix(rule, seen, inside, line_of(line) if line else ""),
        (seen.run.device,),
        (seen.run.usage,),
        (seen.run.subject,),
        (seen.operator,) if seen.operator else (),
        (seen.run.phase,),
        seen.count,
        origins=tuple(each for each in seen.origins if not (line and (each.file, each.line) == (line.file, line.line))),
        replaced=seen.run.replaced,
    )


def _inside(seen: Observation, line: Frame) -> str:
    """The expression of the line that did it."""
    if seen.operator.endswith("is_available") or ".is_" in seen.operator:
        return expression(line, "::is_available")
    if seen.kind in NAMES_A_DEVICE:
        kinds = [each for each in KINDS_OF_DEVICE if each in seen.operator] or KINDS_OF_DEVICE
        found = next((found for kind in kinds if (found := device_expression(line, kind))), "")
        return found or expression(line, f"::{seen.operator.rpartition('.')[2]}")
    return expression(line, seen.operator, waits=seen.kind == "sync")


def _fix(rule: AuditRule, seen: Observation, inside: str, code: str) -> str:
    """What to change: for the operands on another device, for the operator, for the expression, or in general.

    Of a line with several statements the expression is not known; a fix for this very error is then that of the line.
    """
    if rule.id in ("mixed-devices", "state-elsewhere") and seen.unregistered:
        names = " and ".join(f"`{name}`" for name in seen.unregistered)
        return f"Register {names} with register_buffer(name, tensor): .to() moves buffers, and not plain attributes"
    if rule.id == "mixed-devices" and (strays := _strays(seen)):
        names = " and ".join(f"`{name}`" for name in strays)
        first = f"Make {names} on the device of the inputs (device=...), or bring it there with .to(...)"
        moved = "; or move the object to the device before it is fed" if seen.run.usage == NOT_MOVED else ""
        return first + moved
    if rule.id == "host-sync" and seen.run.usage == NOT_MOVED and seen.target == HOST:
        return "Move the object to the device before it is fed, so that nothing goes to the CPU"
    if specific := rule.fix_of.get(_way(rule, seen)):
        return specific.format(expression=inside or code) if inside or code else rule.fix
    return rule.fix_at.format(expression=inside) if inside else rule.fix


def _way(rule: AuditRule, seen: Observation) -> str:
    """What a fix is looked up by: the operator, of an error what it says, or of a copy where it goes."""
    if seen.kind in ("error", *NAMES_A_DEVICE):
        return next((part for part in rule.fix_of if part in f"{seen.operator} {seen.what}"), "")
    if not seen.source:
        return seen.operator
    if seen.source != HOST:
        return "to host"
    return "number to device" if seen.elements == 1 else "to device"


def _strays(seen: Observation) -> list[str]:
    """The operands that are not on the device under test."""
    device = seen.run.device if ":" in seen.run.device else f"{seen.run.device}:0"
    return [name for name, told in seen.operands if not told.endswith(f" on {device}")]


def _merge(one: Finding, other: Finding) -> Finding:
    graver = max(one, other, key=lambda found: SEVERITIES.index(found.severity))  # the first, where they are equal
    lists = ("devices", "usages", "subjects", "operators", "phases", "origins")
    union = {name: tuple(dict.fromkeys(getattr(one, name) + getattr(other, name))) for name in lists}
    both = one.replaced and other.replaced
    return replace(graver, count=one.count + other.count, replaced=both, **union)  # type: ignore[arg-type]


def _refused(rule: str) -> Callable[[Observation], Verdict]:
    """A refusal is an error, but for a metric that nobody moved: it says so at once, and moving it is the way out."""

    def judged(seen: Observation) -> Verdict:
        text = seen.what.strip().splitlines()[0] if seen.what.strip() else f"{seen.operator} was refused"
        if seen.operands:
            text += "\n" + ", ".join(f"`{name}` is {told}" for name, told in seen.operands)
        if not seen.raised:
            return Verdict(rule, text + "\n(the code handled the error)", "note")
        loud = rule == "mixed-devices" and seen.run.usage == NOT_MOVED
        return Verdict(rule, text, "warning" if loud else "error")

    return judged


def _sync(seen: Observation) -> Verdict | None:
    """A wait matters where it is paid in every step: in an update, in functions of that kind, and in loops."""
    name = seen.what or f"{seen.operator} synchronizes with the device"
    if seen.run.phase == "update":
        each = seen.count / max(seen.run.calls, 1)
        return Verdict("host-sync", f"{name}, {_times(each)} an update")
    if seen.run.phase != "script":
        return None
    if any(frame.function.rpartition(".")[2] in HOT for frame in seen.stack):
        return Verdict("host-sync", f"{name}, {_times(seen.count)} in the run")
    if seen.count < LOOP or seen.source == HOST:  # batches, and a model's parameters, must come from the CPU
        return None
    return Verdict("host-sync", f"{name}, {_times(seen.count)} in the run", "note")


def _times(count: float) -> str:
    return {1: "once", 2: "2 times"}.get(count, f"{count:.3g} times")  # type: ignore[call-overload, no-any-return]


def _copy(seen: Observation) -> Verdict | None:
    kind, _, index = seen.run.device.partition(":")
    if index not in ("", "0") and seen.target == f"{kind}:0" and seen.source in _could_come_from(seen):
        return Verdict("moved-to-default-device", f"A tensor goes from {seen.source} to {seen.target}, the default")
    if seen.non_blocking and not seen.waited and seen.source != seen.target:
        ends = {seen.source.partition(":")[0], seen.target.partition(":")[0]}
        if seen.target == HOST or "mps" in ends:
            return Verdict("non-blocking-copy", f"A copy from {seen.source} to {seen.target} does not wait")
    return None


def _could_come_from(seen: Observation) -> tuple[str, ...]:
    """A script may well use the default device on purpose; a metric whose inputs are elsewhere may not."""
    return (seen.run.device,) if seen.run.phase == "script" else (seen.run.device, HOST)


def _fallback(seen: Observation) -> Verdict:
    return Verdict("operator-fallback", seen.what or f"{seen.operator} runs on the CPU")


def _nondeterministic(seen: Observation) -> Verdict:
    return Verdict("nondeterministic", seen.what or f"{seen.operator} adds in any order")


def _as(rule: str) -> Callable[[Observation], Verdict]:
    return lambda seen: Verdict(rule, seen.what)


def _as_warning(rule: str) -> Callable[[Observation], Verdict]:
    return lambda seen: Verdict(rule, seen.what, "warning")


JUDGES: dict[str, Callable[[Observation], Verdict | None]] = {
    "devices": _refused("mixed-devices"),
    "dtype": _refused("dtype-missing"),
    "operator": _refused("operator-missing"),
    "deterministic": _refused("nondeterministic"),
    "error": _refused("device-error"),
    "sync": _sync,
    "copy": _copy,
    "fallback": _fallback,
    "nondeterministic": _nondeterministic,
    "result": _as("result-elsewhere"),
    "state": _as("state-elsewhere"),
    "value": _as("unseeded"),
    "counter": _as("float32-counter"),
    "collective": _as("cpu-collective"),
    "foreign": _as("hard-coded-device"),
    "location": _as("map-location"),
    "unused": _as_warning("hard-coded-device"),
    "disabled": _as_warning("hard-coded-device"),
}


def relative(file: str, base: Path) -> str:
    """A path as it is shown: from the working folder where it lies below, else from the packages' folder, else whole.

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
