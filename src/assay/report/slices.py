"""Parts of the samples, and what was measured on each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from assay._records import Record
from assay.errors import ConfigError, ShapeError, describe
from assay.report.per_sample.packed_array import PackedArray
from assay.report.per_sample.resampling import Resampling
from assay.report.per_sample.samples import Samples
from assay.report.value import Value


def written(name: str | Mapping[str, object]) -> str:
    """The name of a slice, also where it is given as the value of each column.

    Example:
        >>> written({"sex": "f", "age": 40})
        'sex = f, age = 40'
    """
    return name if isinstance(name, str) else ", ".join(f"{column} = {value}" for column, value in name.items())


def spaced(name: str) -> str:
    """The name of a slice as reports write it.

    Example:
        >>> spaced("sex=f,country=de")
        'sex = f, country = de'
    """
    return re.sub(r"\s*,\s*(?=[^,=]+=)", ", ", re.sub(r"\s*=\s*", " = ", name.strip()))


class Slice(Record):
    """The metrics of some of the samples of a section.

    Args:
        name: which samples: ``"language = de"``.
        count: how many they are.
        values: the metrics, under the names that they have in the section.
        members: which samples they are, as booleans in the order of the ids of the section, if that was kept.
        resampling: which samples the replicates of its values rest on.

    Raises:
        ConfigError: a value comes twice.
        ShapeError: the count is not that of the members.

    Example:
        >>> Slice("night", 120, [Value("accuracy", 0.81)]).number("accuracy")
        0.81
    """

    name: str
    count: int
    values: tuple[Value, ...] = ()
    members: PackedArray | None = None
    resampling: Resampling | None = None

    @classmethod
    def of(cls, name: str, values: Any, members: Any) -> Self:
        """A slice that knows its samples.

        Args:
            name: which samples.
            values: the metrics.
            members: which samples they are, as booleans.
        """
        mask = PackedArray.of(np.asarray(members, dtype=bool), "members")
        return cls(name, int(np.count_nonzero(mask.values)), values, mask)

    def _check(self) -> None:
        names = [value.name for value in self.values]
        if len(set(names)) < len(names):
            got = f"{names} in {self.name!r}"
            raise ConfigError(describe("Slice.values", got, "unique names", "Give each value a name of its own"))
        if self.members is not None and not self._has_mask(self.members):
            got, expected = f"members that are not {self.count:,} true booleans", "one for each sample of the slice"
            raise ShapeError(describe(f"Slice {self.name!r}", got, expected, "Pass the mask to Slice.of"))

    def _has_mask(self, members: PackedArray) -> bool:
        return members.is_yes_or_no and (members.form == "file" or np.count_nonzero(members.values) == self.count)

    def number(self, name: str) -> float | None:
        """The value of a metric, None where the slice lacks it."""
        return next((value.value for value in self.values if value.name == name), None)

    def check_samples(self, samples: Samples | None) -> None:
        """Raise where members or columns do not belong to these samples.

        Raises:
            ShapeError: there are more or fewer members than samples.
            ConfigError: a value names a column and is not its mean.
        """
        if self.members is not None and (samples is None or len(self.members) != len(samples)):
            expected = "samples in the section" if samples is None else f"{len(samples):,}, one for each sample"
            got = f"{len(self.members):,} members"
            raise ShapeError(describe(f"Slice {self.name!r}", got, expected, "Pass the mask over all samples"))
        for value in self.values:
            if value.numerator and self.members is None:
                got = f"column {value.numerator!r} without members"
                raise ConfigError(
                    describe(f"Slice {self.name!r}", got, "the mask of its samples", "Make it by Slice.of")
                )
            if value.numerator and samples is not None and not samples.is_stored:
                value.check_terms(samples, None if self.members is None else self.members.values)
