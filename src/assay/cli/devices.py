"""``assay devices``: what is on this machine, what each kind of device can do, and why not."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import Any

import torch
import typer

from assay.cli.options.tools import DevicesCommand
from assay.cli.output import write_and_print
from assay.conformance import check_device
from assay.devices import available, facts, policy, self_test
from assay.devices.capabilities import FEATURES, Fact, kind
from assay.devices.kinds import DEVICES
from assay.devices.processor import device_name
from assay.devices.selftest import SelfTest
from assay.errors import ConfigError, describe
from assay.pretend import pretend
from assay.pretend.native_engine.build import built, load, why_not
from assay.render import Chapter, DataGrid, Document, GridCell, GridColumn, GridRow, Line, Notes, Paragraph, Span
from assay.render.terminal import show as show_document
from assay.tally.triton_check import check_kernels

MARKS = {
    "yes": Span("yes", "good"),
    "no": Span("no", "bad"),
    "partial": Span("partly", "warn"),
    "unknown": Span("?", "faint"),
}


def run(options: DevicesCommand) -> None:
    """Print the devices, check one of them, or compile the engine of pretend ones."""
    if options.check or options.pretend or options.out:
        check(options)
    elif options.prepare:
        prepare_pretend()
    else:
        show(as_json=options.json)


def check(options: DevicesCommand) -> None:
    """Check a device, write the file, print the page, and exit: 0 holds, 1 differs, 2 not enough evidence."""
    if not options.check:
        do = "Add --check with the name of a device"
        raise ConfigError(describe("--pretend and --out", "no --check", "the device to be checked", do))
    with pretend(options.check) if options.pretend else nullcontext():
        found = check_device(options.check)
        write_and_print(found, options)
    raise typer.Exit(found.exit_code)


def show(*, as_json: bool) -> None:
    """Print the devices of this machine and the facts about each kind, as tables or as JSON."""
    if as_json:
        print(json.dumps(collect(), indent=2))
        return
    show_document(devices_document(collect()), pipe_width=160)  # nobody can widen a pipe: few broken lines


def prepare_pretend() -> None:
    """Compile the engine of pretend devices, or say that it is there."""
    load()
    print(f"The engine of pretend devices is ready for torch {torch.__version__}.")


def collect() -> dict[str, Any]:
    """Everything that ``assay devices`` shows, as plain values."""
    return {
        "torch": torch.__version__,
        "here": [_here(device) for device in available()],
        "kinds": [_kind(name) for name in DEVICES],
        "pretend": _pretend(),
    }


def _pretend() -> str:
    if built():
        return "native engine, compiled"
    return f"the Python engine: {missing}" if (missing := why_not()) else "native engine, compiled at first use"


def _here(device: torch.device) -> dict[str, Any]:
    kernels = check_kernels(device).outcomes if policy(device).triton.value else ()
    test = SelfTest(device, (*self_test(device).outcomes, *kernels))
    return {
        "device": str(device),
        "name": device_name(device),
        "self_test": {outcome.name: outcome.detail if not outcome.passed else "ok" for outcome in test.outcomes},
        "passed": test.passed,
        "policy": {
            name: {"value": _plain(decision.value), "reason": decision.reason}
            for name, decision in policy(device).decisions.items()
        },
    }


def _kind(name: str) -> dict[str, Any]:
    known = kind(name)
    assert known is not None, name
    return {
        "type": name,
        "name": known.name,
        "torch": known.torch,
        "checked": known.checked,
        "tested": known.tested,
        "facts": {
            fact.feature: {
                "supported": _answer(fact),
                "since": fact.since,
                "why": fact.why,
                "source": fact.source,
            }
            for fact in facts(name)
        },
    }


def _answer(fact: Fact) -> str:
    return {True: "yes", False: "no", None: "unknown"}.get(fact.supported, "partial")  # type: ignore[arg-type]


def _plain(value: object) -> object:
    return value if isinstance(value, bool | int) else str(value)


def devices_document(data: dict[str, Any]) -> Document:
    """What is shown: this machine with the policy of each device, then the facts about each kind."""
    return Document("", (*_machine(data), *_kinds(data)))


def _machine(data: dict[str, Any]) -> Iterator[Chapter]:
    yield Chapter("On this machine", note=f"torch {data['torch']}; pretend devices: {data['pretend']}")
    for here in data["here"]:
        results = here["self_test"]
        verdict = f"self-test {'passed' if here['passed'] else 'FAILED'}"
        verdict += f": {sum(result == 'ok' for result in results.values())} of {len(results)}"
        title = (
            Span(here["device"], "strong"),
            Span(f"  {here['name']}  ", "faint"),
            Span(verdict, "good" if here["passed"] else "bad"),
        )
        failed = [Paragraph(Span(f"  {name}: {result}", "bad")) for name, result in results.items() if result != "ok"]
        yield Chapter("", (Paragraph(title), *failed, _policy_grid(here["policy"])))


def _policy_grid(decisions: dict[str, Any]) -> DataGrid:
    return _grid(
        (GridColumn("decision", "word"), GridColumn("value", "word"), GridColumn("reason")),
        (
            (name.replace("_", " "), Span(_cell(decision["value"]), "info"), Span(decision["reason"], "faint"))
            for name, decision in decisions.items()
        ),
        header=False,
    )


def _grid(columns: tuple[GridColumn, ...], rows: Iterable[tuple[Line, ...]], *, header: bool = True) -> DataGrid:
    return DataGrid(columns, tuple(GridRow(tuple(map(GridCell, row))) for row in rows), header=header)


def _cell(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value).removeprefix("torch.")


def _kinds(data: dict[str, Any]) -> Iterator[Chapter]:
    kinds = data["kinds"]
    columns = (GridColumn("feature", "word"), *(GridColumn(each["type"], "word") for each in kinds))
    rows: Iterable[tuple[Line, ...]] = (
        (feature, *(MARKS[each["facts"][feature]["supported"]] for each in kinds)) for feature in FEATURES
    )
    yield Chapter("What each kind of device can do", (_grid(columns, rows),))
    yield from map(_reasons, kinds)
    tested = ", ".join(each["type"] for each in kinds if each["tested"])
    dates = ", ".join(sorted({f"{each['checked']} for torch {each['torch']}" for each in kinds}))
    facts = f"Facts of {dates}. Tried on a real one: {tested}; the others rest on the sources in brackets."
    yield Chapter("", (Notes((facts, "The sources in full: assay devices --json")),))


def _reasons(each: dict[str, Any]) -> Chapter:
    """What a kind of device lacks, and why."""
    rows = [
        (f"{name:{max(map(len, FEATURES))}}", MARKS[fact["supported"]], _reason(fact))
        for name, fact in each["facts"].items()
        if fact["supported"] in ("no", "partial")
    ]
    columns = (GridColumn("feature", "word"), GridColumn("answer", "word"), GridColumn("reason"))
    title = Paragraph((Span(each["type"], "strong"), Span(f"  {each['name']}", "faint")))
    return Chapter("", (title, _grid(columns, rows, header=False)))


def _reason(fact: dict[str, str]) -> Line:
    since = f" (since torch {fact['since']})" if fact["since"] else ""
    return (fact["why"] + since, Span(_short(fact["source"]), "faint"))


def _short(source: str) -> str:
    """Sources as they fit a grid: issues as ``pytorch#1``, other documents by their last part."""
    names = (part.rsplit("/", 1)[-1].partition(":")[0] for part in source.split(", ") if part)
    return f"  [{' '.join(names)}]" if source else ""
