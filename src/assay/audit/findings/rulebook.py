"""What the audit looks for: the rules, read from ``rulebook.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from assay.errors import ConfigError, describe

SEVERITIES = ("note", "warning", "error")  # rising


@dataclass(frozen=True, kw_only=True)
class AuditRule:
    """One kind of device bug.

    Attributes:
        id: its name in findings and in suppression comments.
        severity: ``"error"`` (it raises or the number is wrong), ``"warning"``, or ``"note"``.
        title: what it is, in a line.
        why: why it is wrong there.
        fix: what to change, in general.
        fix_at: what to change, with ``{expression}`` for the expression that did it.
        fix_of: the same for single operators, by their names, and for copies by where they go.
        bug: the smallest example of it.
        fixed: the same example without the bug.
        source: where the bug was seen or is documented.
    """

    id: str
    severity: str
    title: str
    why: str
    fix: str
    fix_at: str
    fix_of: dict[str, str]
    bug: str
    fixed: str
    source: str


@cache
def rules() -> dict[str, AuditRule]:
    """Every rule by its id, in the order of summaries.

    Returns:
        Id -> rule.

    Example:
        >>> rules()["device-sync"].severity
        'warning'
    """
    text = files(__package__).joinpath("rulebook.toml").read_text("utf-8")
    by_id = {}
    for name, table in tomllib.loads(text).items():
        fix_of = table.pop("fix_of", {})
        by_id[name] = AuditRule(id=name, **{key: value.strip("\n") for key, value in table.items()}, fix_of=fix_of)
    return by_id


def chosen(only: Iterable[str] = (), without: Iterable[str] = ()) -> frozenset[str]:
    """The ids of the rules to report: ``only`` these if any are named, and none of ``without``.

    Raises:
        ConfigError: there is no rule of that name.

    Example:
        >>> sorted(chosen(only=["device-sync", "unseeded"], without=["unseeded"]))
        ['device-sync']
    """
    only, without = tuple(only), tuple(without)
    for name in (*only, *without):
        if name not in rules():
            raise ConfigError(describe("rule", repr(name), f"one of {', '.join(rules())}", "Correct the name"))
    return frozenset(only or rules()) - frozenset(without)


def at_least(severity: str, least: str) -> bool:
    """Whether a severity is that of ``least`` or more severe.

    Example:
        >>> at_least("error", "warning"), at_least("note", "warning")
        (True, False)
    """
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)


def page() -> str:
    """The page ``docs/audit_rules.md``, written from the rules."""
    parts = ["# The rules of `assay audit`", _INTRODUCTION, *(_section(rule) for rule in rules().values())]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = """This page is written from `src/assay/audit/findings/rulebook.toml`; a test holds them
together. `error` is what raises or gives a wrong number on the device, `warning` what will do so or costs time in every
step, `note` what is good to know."""


def _section(rule: AuditRule) -> str:
    return f"""## {rule.id}

**{rule.title}** ({rule.severity}). {rule.why}.

```py
{rule.bug}
```

{rule.fix}:

```py
{rule.fixed}
```

Source: {rule.source}"""
