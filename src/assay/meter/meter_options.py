"""How a meter counts: its options, and which values they may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric

STAGE_BYTES = 1 << 21
Recount = Literal["sampled", "all", "off"]
"""Which batches of a device are counted once more on the CPU; see docs/proof.md."""
RECOUNTS: tuple[Recount, ...] = ("sampled", "all", "off")
_RECOUNT = 'Pass recount="sampled"; with "off" nothing is counted once more'


@dataclass(frozen=True)
class MeterOptions:
    """How a meter counts; `Meter` describes each option.

    Raises:
        ConfigError: an invalid value.
    """

    weighted: bool = False
    strict: bool = False
    stage_bytes: int = STAGE_BYTES
    recount: Recount = "sampled"
    fingerprints: bool = True

    def __post_init__(self) -> None:
        check_recount(self.recount)
        for name in ("weighted", "strict", "fingerprints"):
            flag: object = getattr(self, name)
            if not isinstance(flag, bool):
                do = f"A metric cannot be named {name}, which is an option"
                do = do if isinstance(flag, Metric) else "Give a bool"
                raise ConfigError(describe(name, repr(flag), "True or False", do))
        size: object = self.stage_bytes
        if not isinstance(size, int) or size < 0:
            do = "Give a number of bytes; 0 stages nothing"
            raise ConfigError(describe("stage_bytes", repr(size), "an integer of 0 or more", do))
        if self.recount == "all" and not size:
            do = "Leave stage_bytes out: with 0 nothing is left to Python, which counts once more"
            raise ConfigError(describe("recount", "'all' with stage_bytes=0", "a stage", do))

    def changed(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """These, with others for some of them; without a stage nothing is counted once more."""
        made = vars(self) | dict(options)
        return made if made["stage_bytes"] or "recount" in options else made | {"recount": "off"}


def check_recount(recount: object) -> None:
    """Raise a `ConfigError` for a `recount` that a meter cannot have."""
    if recount not in RECOUNTS:
        do = "A metric cannot be named recount, which is an option" if isinstance(recount, Metric) else _RECOUNT
        raise ConfigError(describe("recount", repr(recount), " or ".join(map(repr, RECOUNTS)), do))
