"""What older releases of torch are known to lack on a device: to see today what users met then."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from assay.devices.capabilities import fact_file
from assay.devices.operators.rules import Rules
from assay.errors import ConfigError, describe

VARIABLE = "ASSAY_PRETEND_TORCH"


def as_of(rules: Rules, release: str) -> Rules:
    """The rules of the installed torch with what an older release of it lacked, as far as that is known.

    Raises:
        ConfigError: it is no release.

    Example:
        >>> from assay.devices.operators.rules import rules
        >>> older, name = as_of(rules("mps"), "2.4"), "aten::_convert_weight_to_int4pack"
        >>> older.operator(name).available, rules("mps").operator(name).available
        (False, True)

    Source:
        ``devices/known/history.toml`` names one for each fact; ``lacked_mps.toml`` is generated from torch's wheels.
    """
    number = _number(release)
    facts = {
        topic: [fact for fact in table if fact["device"] == rules.device and number < _number(fact["until"])]
        for topic, table in _history()
    }
    lacked = frozenset(f"aten::{name}" for fact in facts["lacked"] for name in fact["operators"].split())
    texts = {fact["name"]: fact["text"] for fact in facts["texts"]}
    return replace(rules, lacked=lacked, texts=rules.texts | texts)


def _history() -> list[tuple[str, list[dict[str, Any]]]]:
    """What older releases lacked, and their texts."""
    history = fact_file("history")
    return [("lacked", history["lacked"] + fact_file("lacked_mps")["lacked"]), ("texts", history["texts"])]


def _number(release: str) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)(?:\.\d+)*$", release) if isinstance(release, str) else None
    if match is None:
        do = "Write two numbers with a dot between them"
        raise ConfigError(describe("release", repr(release), 'a release of torch, such as "2.4"', do))
    return int(match[1]), int(match[2])
