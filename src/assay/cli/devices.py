"""``assay devices``: what is on this machine, what each kind of device can do, and why not."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch
from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from assay.devices import available, facts, policy, self_test
from assay.devices.capabilities import DEVICES, FEATURES, Fact, kind
from assay.devices.names import name_of
from assay.pretend.native_engine.build import built, load, why_not

MARKS = {"yes": ("yes", "green"), "no": ("no", "red"), "partial": ("partly", "yellow"), "unknown": ("?", "dim")}


def show(*, as_json: bool) -> None:
    """Print the devices of this machine and the facts about each kind, as tables or as JSON."""
    if as_json:
        print(json.dumps(collect(), indent=2))
        return
    data = collect()
    shown = Group(*_machine(data), Text(), *_kinds(data))
    if sys.stdout.isatty():
        Console(highlight=False).print(shown)
        return
    console = Console(width=160, color_system=None, highlight=False)  # nobody can widen a pipe: few broken lines
    with console.capture() as captured:
        console.print(shown)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()))


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
    test = self_test(device)
    return {
        "device": str(device),
        "name": name_of(device),
        "self_test": {outcome.name: outcome.detail if not outcome.passed else "ok" for outcome in test.outcomes},
        "passed": test.passed,
        "policy": {
            name: {"value": _plain(made.value), "reason": made.reason}
            for name, made in policy(device).decisions.items()
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


def _machine(data: dict[str, Any]) -> list[Table | Text]:
    parts: list[Table | Text] = [Text.assemble(("On this machine", "bold"), (f"  torch {data['torch']}", "dim"))]
    parts.append(Text.assemble("\npretend devices  ", (data["pretend"], "dim")))
    for here in data["here"]:
        total, good = len(here["self_test"]), sum(result == "ok" for result in here["self_test"].values())
        verdict = f"self-test passed: {good} of {total}" if here["passed"] else f"self-test FAILED: {good} of {total}"
        style = "green" if here["passed"] else "red"
        parts.append(Text.assemble(f"\n{here['device']}", (f"  {here['name']}  ", "dim"), (verdict, style)))
        for name, result in here["self_test"].items():
            if result != "ok":
                parts.append(Text(f"  {name}: {result}", style="red"))
        parts.append(_policy_table(here["policy"]))
    return parts


def _policy_table(decisions: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, style="cyan")
    table.add_column(style="dim", overflow="fold")
    for name, made in decisions.items():
        table.add_row(f"  {name.replace('_', ' ')}", _shown(made["value"]), made["reason"])
    return table


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value).removeprefix("torch.")


def _kinds(data: dict[str, Any]) -> list[Table | Text]:
    heading = Text.assemble(("What each kind of device can do", "bold"))
    return [heading, _overview(data["kinds"]), *_reasons(data["kinds"]), *_provenance(data["kinds"])]


def _provenance(kinds: list[dict[str, Any]]) -> list[Text]:
    tried = ", ".join(each["type"] for each in kinds if each["tested"])
    dates = ", ".join(sorted({f"{each['checked']} for torch {each['torch']}" for each in kinds}))
    text = f"\nFacts of {dates}. Tried on a real one: {tried}; the others rest on the sources in brackets."
    return [Text(text, style="dim"), Text("The sources in full: assay devices --json", style="dim")]


def _overview(kinds: list[dict[str, Any]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    for each in kinds:
        table.add_column(each["type"], no_wrap=True)
    for feature in FEATURES:
        marks = (MARKS[each["facts"][feature]["supported"]] for each in kinds)
        table.add_row(f"  {feature}", *(Text(text, style=style) for text, style in marks))
    return table


def _reasons(kinds: list[dict[str, Any]]) -> list[Table | Text]:
    parts: list[Table | Text] = []
    for each in kinds:
        parts.append(Text.assemble("\n", (each["type"], "bold"), (f"  {each['name']}", "dim")))
        rows = [(name, fact) for name, fact in each["facts"].items() if fact["supported"] in ("no", "partial")]
        parts.append(_reason_table(rows))
    return parts


def _reason_table(rows: list[tuple[str, dict[str, str]]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, min_width=max(map(len, FEATURES)) + 2)
    table.add_column(no_wrap=True, min_width=len("partly"))
    table.add_column(overflow="fold")
    for name, fact in rows:
        text, style = MARKS[fact["supported"]]
        since = f" (since torch {fact['since']})" if fact["since"] else ""
        reason = Text.assemble(fact["why"] + since, (_short(fact["source"]), "dim"))
        table.add_row(f"  {name}", Text(text, style=style), reason)
    return table


def _short(source: str) -> str:
    """Sources as they fit a table: issues as ``pytorch#1``, other documents by their last part."""
    names = (part.rsplit("/", 1)[-1].partition(":")[0] for part in source.split(", ") if part)
    return f"  [{' '.join(names)}]" if source else ""
