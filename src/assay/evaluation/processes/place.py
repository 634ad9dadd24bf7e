"""Where each process stands: which samples it is given, with whom, and who must call the model as often."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from assay.errors import ConfigError, describe
from assay.evaluation.processes.links import SAY, Group, Links


@dataclass(frozen=True)
class Place:
    """Where a process stands among the others.

    Processes that are given the same samples form a data-parallel coordinate; samples are shared out over coordinates,
    and one member of each counts them.

    Attributes:
        rank: the process.
        own: the number of its coordinate.
        leaders: the first member of each coordinate.
        members: all members of its own.
        step: the processes whose forwards communicate with its own.
        predict: the members that have outputs: of a pipeline those with the last stage. The first of them counts.
    """

    rank: int
    own: int
    leaders: Group
    members: Group
    step: Group
    predict: Group

    @property
    def count(self) -> int:
        """How many coordinates there are."""
        return len(self.leaders)

    @property
    def counts(self) -> bool:
        """Whether this process counts the samples of its coordinate."""
        return self.rank == self.predict[0]

    @property
    def has_outputs(self) -> bool:
        """Whether this process has outputs of the model."""
        return self.rank in self.predict

    @property
    def communicates(self) -> bool:
        """Whether its forwards communicate with those of others."""
        return len(self.step) > 1

    @property
    def needs_repeats(self) -> bool:
        """Whether a process with other samples must call the model equally often."""
        return len(self.step) > len(self.members)


def apart(rank: int, size: int) -> Place:
    """The place of a process among others that each have the whole model."""
    return Place(rank, rank, tuple(range(size)), (rank,), (rank,), (rank,))


def places(links: Sequence[Links]) -> list[Place]:
    """The place of each process.

    Args:
        links: what each of them is tied to, by rank.

    Raises:
        ConfigError: none of the processes that have the same samples has outputs.

    Example:
        >>> tensor_parallel = Links(same=frozenset({(0, 1)})), Links(same=frozenset({(0, 1)}))
        >>> [place.own for place in places([*tensor_parallel, Links()])]
        [0, 0, 1]
    """
    same = {group for each in links for group in each.same}
    members = _classes(same, len(links))
    step = _classes(same | {group for each in links for group in each.step}, len(links))
    leaders = tuple(sorted({group[0] for group in members}))
    predict = [tuple(each for each in group if links[each].has_outputs) for group in members]
    if not all(predict):
        got = f"no outputs on ranks {', '.join(map(str, members[predict.index(())]))}"
        raise ConfigError(describe("model", got, "the last stage of the pipeline on one of them", SAY))
    return [
        Place(rank, leaders.index(members[rank][0]), leaders, members[rank], step[rank], predict[rank])
        for rank in range(len(links))
    ]


def same_models(places: Sequence[Place], by_position: bool) -> list[Group]:
    """The processes that are to have equal tensors, but for those of type `DTensor`.

    Args:
        places: of all processes, by rank.
        by_position: only processes at the same position of those that communicate, as parts of a model may be plain
            tensors; else all.
    """
    if not by_position:
        return [tuple(range(len(places)))]
    parts: dict[int, list[int]] = {}
    for place in places:
        parts.setdefault(place.step.index(place.rank), []).append(place.rank)
    return [tuple(ranks) for ranks in parts.values()]


def _classes(groups: Iterable[Group], size: int) -> list[Group]:
    """For each process all that groups tie to it, also through others."""
    parents = list(range(size))

    def root(rank: int) -> int:
        while parents[rank] != rank:
            parents[rank] = parents[parents[rank]]
            rank = parents[rank]
        return rank

    for first, *others in groups:
        for other in others:
            parents[root(other)] = root(first)
    classes: dict[int, list[int]] = {}
    for rank in range(size):
        classes.setdefault(root(rank), []).append(rank)
    return [tuple(classes[root(rank)]) for rank in range(size)]
