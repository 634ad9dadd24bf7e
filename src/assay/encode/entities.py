"""Entities in tagged sentences, by the rules of seqeval."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Literal, TypeAlias

from torch import Tensor

from assay.encode.strings import StringEncoder, check_list, check_string, table
from assay.errors import InputError, describe

Scheme = Literal["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"]
Tag: TypeAlias = tuple[str, str]
"""The letter of a tag and the type of its entity: `B-PER` is `("B", "PER")`."""
Entity: TypeAlias = tuple[str, int, int]
"""A type, the first place, and the place behind the last."""
_OUTSIDE: Tag = ("O", "_")
_LENIENT = "BIESO"

_RULES: dict[str, tuple[str, str, str, str]] = {
    "IOB1": ("IOB", "OI* II! BI* IB= BB=", "BI= II=", "II! IO* IB* BO* BI! BB="),
    "IOB2": ("IOB", ".B*", "BI= II=", "IO* II! IB* BO* BI! BB*"),
    "IOE1": ("IOE", "OI* II! EI* EE=", "II= IE=", "II! IO* IE! EI= EE="),
    "IOE2": ("IOE", "OI* OE* EI* EE* II! IE!", "IE= II=", "E.*"),
    "IOBES": ("IOBES", ".B* .S*", "BI= BE= II= IE=", "S.* E.*"),
    "BILOU": ("BILOU", ".B* .U*", "BI= BL= II= IL=", "U.* L.*"),
}
"""The letters of each scheme; then where an entity begins, goes on and ends, as seqeval has it: the letter of a tag and
the next one (`.` is any), and whether their types are equal (`=`), differ (`!`) or do not count (`*`)."""


@dataclass(frozen=True)
class EntityCounts(StringEncoder):
    """How many entities the tags of a sentence and those predicted have, and how many of them are the same.

    With `types` for each of these types, else for all together. Without a scheme, tags are read as conlleval does,
    where an `I-` without a `B-` before it begins an entity.
    """

    scheme: Scheme | None = None
    types: tuple[str, ...] | None = None

    takes: ClassVar[str] = "lists of tags"

    @property
    def names(self) -> tuple[str, ...]:
        counted = ("common entities, twice", "entities of both", "target entities")
        of = [""] if self.types is None else [f" {each}" for each in self.types]
        return tuple(f"{self.scheme or 'conlleval'} {what}{each}" for each in of for what in counted)

    def check(self, preds: Sequence[Any], target: Sequence[Any]) -> None:
        check_list("preds", preds)
        check_list("target", target)
        for k, (predicted, wanted) in enumerate(zip(preds, target, strict=True)):
            self._check_tags(f"preds[{k}]", predicted)
            self._check_tags(f"target[{k}]", wanted)
            if len(predicted) != len(wanted):
                got = f"{len(predicted)} tags for {len(wanted)} of the target"
                raise InputError(describe(f"preds[{k}]", got, "one tag a token", "Align predictions with tokens"))

    def _check_tags(self, place: str, tags: Any) -> None:
        if isinstance(tags, str | bytes) or not isinstance(tags, Sequence):
            raise InputError(describe(place, type(tags).__name__, "a list of tags", "Give the tags of a sentence"))
        for i, tag in enumerate(tags):
            check_string(f"{place}[{i}]", tag)
            letters = _RULES[self.scheme][0] if self.scheme else _LENIENT
            letter, kind = self._parsed(tag) if tag else ("", "")
            if letter not in letters or not letter:
                expected = f"a tag that begins with one of {', '.join(letters)}"
                raise InputError(describe(f"{place}[{i}]", repr(tag), expected, "Check the scheme"))
            if self.types is not None and letter != "O" and kind not in self.types:
                expected = f"one of the types {', '.join(self.types)}"
                raise InputError(describe(f"{place}[{i}]", repr(tag), expected, "Add it to types"))

    def rows(self, preds: Sequence[Any], target: Sequence[Any]) -> Tensor:
        rows = []
        for predicted, wanted in zip(preds, target, strict=True):
            both = [set(self._entities(tags)) for tags in (predicted, wanted)]
            row: list[int] = []
            for kind in self.types or (None,):
                found, true = ({each for each in several if kind in (None, each[0])} for several in both)
                row += 2 * len(found & true), len(found) + len(true), len(true)
            rows.append(row)
        return table(list(zip(*rows, strict=True)) or [()] * len(self.names))

    def _entities(self, tags: Sequence[str]) -> Iterator[Entity]:
        parsed = [self._parsed(tag) for tag in tags]
        return _strict_entities(parsed, self.scheme) if self.scheme else _lenient_entities(parsed)

    def _parsed(self, tag: str) -> Tag:
        kind = tag[1:].strip("-") if self.scheme else tag[1:].split("-", maxsplit=1)[-1]
        return tag[0], kind or "_"


def _strict_entities(tags: Sequence[Tag], scheme: Scheme) -> Iterator[Entity]:
    """The entities of a scheme; what it does not allow is no entity."""
    begins, goes_on, ends = map(_pairs, _RULES[scheme][1:])
    every = [*tags, _OUTSIDE]
    place, last = 0, _OUTSIDE
    while place < len(every):
        start = place
        place += 1
        if _allowed(begins, last, every[start]):
            while place < len(tags) and _allowed(goes_on, every[place - 1], every[place]):
                place += 1
            if _allowed(ends, every[place - 1], every[place]):
                yield every[start][1], start, place
        last = every[place - 1]


@cache
def _pairs(rules: str) -> frozenset[tuple[str, str, str]]:
    """The rules with every letter in place of a dot."""
    letters = "IOBESUL"
    return frozenset(
        (first, second, types)
        for rule in rules.split()
        for first in (letters if rule[0] == "." else rule[0])
        for second in (letters if rule[1] == "." else rule[1])
        for types in ("=!" if rule[2] == "*" else rule[2])
    )


def _allowed(pairs: frozenset[tuple[str, str, str]], first: Tag, second: Tag) -> bool:
    return (first[0], second[0], "=" if first[1] == second[1] else "!") in pairs


def _lenient_entities(tags: Sequence[Tag]) -> Iterator[Entity]:
    """The entities as conlleval reads them."""
    start, last = 0, _OUTSIDE
    for place, tag in enumerate([*tags, _OUTSIDE]):
        pair, changed = last[0] + tag[0], last[1] != tag[1]
        if last[0] in "ES" or pair in ("BB", "BS", "BO", "IB", "IS", "IO") or (last[0] != "O" and changed):
            yield last[1], start, place
        if tag[0] in "BS" or pair in ("EE", "EI", "SE", "SI", "OE", "OI") or (tag[0] != "O" and changed):
            start = place
        last = tag
