"""Which samples the replicates of values rest on: values of two reports that were resampled alike can be paired."""

from __future__ import annotations

from dataclasses import dataclass

from assay._records import Record
from assay.errors import ConfigError, describe


@dataclass(frozen=True, eq=False)
class Resampling(Record):
    """How samples were resampled: randomly assigned to groups by their ids, which are then drawn (docs/intervals.md).

    Args:
        seed: of the assignment and of the draws.
        groups: to how many groups samples were assigned.
        filled: how many groups have samples.
        count: how many samples there are.
        ids: the sum and the exclusive or of the hashes of all ids, in hexadecimal digits.
        targets: the sum of the hashes of all ids with their targets; empty where there are none.

    Raises:
        ConfigError: more groups have samples than there are.
    """

    seed: int
    groups: int
    filled: int
    count: int
    ids: str
    targets: str = ""

    def _check(self) -> None:
        if not 0 <= self.filled <= min(self.groups, self.count):
            got, expected = f"{self.filled} filled groups", f"at most {min(self.groups, self.count)}"
            raise ConfigError(describe("Resampling.filled", got, expected, "Count the groups that have samples"))


def why_not_alike(a: Resampling, b: Resampling) -> str:
    """Why values cannot be paired replicate by replicate, as a part of a sentence; empty where they can.

    Example:
        >>> why_not_alike(Resampling(0, 128, 128, 900, "a1"), Resampling(7, 128, 128, 900, "a1"))
        'samples were resampled with the seeds 0 and 7: evaluate with one seed'
    """
    if (a.count, a.ids) != (b.count, b.ids):
        return f"other samples: {a.count:,} and {b.count:,}, with other ids"
    if a.targets and b.targets and a.targets != b.targets:
        return "samples have other targets"
    if a.seed != b.seed:
        return f"samples were resampled with the seeds {a.seed} and {b.seed}: evaluate with one seed"
    if (a.groups, a.filled) != (b.groups, b.filled):
        return f"samples were resampled in {a.groups} and {b.groups} groups: evaluate the same metrics"
    return ""
