"""Requests of lm-eval on several processes: each answers a part of them, and all have the answers to all.

lm-eval's own way to share out requests is not used: each of its processes draws examples for its own prompts, so
prompts, and with them numbers, depend on how many processes there are (`Task.build_all_requests` of 0.4.13). Here every
process builds all requests, and batches of them are shared out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import islice
from typing import Any, TypeVar

from torch import nn

from assay.errors import ConfigError, describe
from assay.evaluation.processes.companions import Companions
from assay.evaluation.processes.guard import CommunicationGuard
from assay.evaluation.processes.join import grad_mode_of
from assay.evaluation.processes.links import SAY, Group
from assay.evaluation.processes.ranks import Ranks

B = TypeVar("B")
T = TypeVar("T")

ROUND = 8
"""Batches of each process between two exchanges of answers."""
_NEAR = 2e-3


class RequestProcesses:
    """The processes that answer requests together; one by default, which answers all.

    Args:
        ranks: all of them.
        companions: those that this one shares the model with; None where it is whole on each.
    """

    def __init__(self, ranks: Ranks | None = None, companions: Companions | None = None) -> None:
        self.ranks, self._companions = ranks or Ranks(only_this=True), companions
        self._guarded = not self.ranks.alone and companions is None
        self._batches = 0
        self._announces = False

    @property
    def grad_mode(self) -> Any:
        """What the model runs in."""
        return grad_mode_of(self.ranks)

    @property
    def multiple(self) -> int:
        """Of how many tokens a model is given a multiple: processes may have equal parts of each text."""
        return len(self.ranks.place.members)

    def same(self, kind: str, digest: str) -> None:
        """Raise where processes do not have the same requests.

        Raises:
            ConfigError: names the processes.
        """
        everyone = self.ranks.gather(lambda: digest)
        if others := [str(rank) for rank, each in enumerate(everyone) if each != everyone[0]]:
            got = f"other requests ({kind}) on rank {', '.join(others)} than on rank 0"
            do = "Give all processes the same tasks, data, tokenizer and seed; prompts must not be drawn at random"
            raise ConfigError(describe("requests", got, "the same on all processes", do))

    def answered(
        self, batches: Iterator[B], answer: Callable[[B], Sequence[T]], spare: Callable[[], Any]
    ) -> Iterator[tuple[B, Sequence[T]]]:
        """Each batch with its answers, in order.

        Args:
            batches: the same on all processes; what it leaves out may depend on the answers before.
            answer: the answers to a batch; none on a process without outputs of the model.
            spare: a call of the model, for when others call it.

        Raises:
            ConfigError: processes with the same requests have different answers.
            RankError: another process failed or is gone.
        """
        most = 1 if self.ranks.alone else ROUND * self.ranks.place.count
        while some := list(islice(batches, most)):
            own = [self._one(each, answer) for each in some[self.ranks.place.own :: self.ranks.place.count]]
            yield from zip(some, self._exchanged(own, len(some), spare), strict=True)

    def _one(self, batch: B, answer: Callable[[B], Sequence[T]]) -> list[T]:
        self.ranks.check()
        self.ranks.note(self._batches, "predicting")
        self._batches += 1
        guard: Any = CommunicationGuard() if self._guarded else nullcontext()  # type: ignore[no-untyped-call]
        self._guarded = False
        with guard:
            return list(answer(batch))

    def _exchanged(self, own: Sequence[list[T]], count: int, spare: Callable[[], Any]) -> list[list[T]]:
        """The answers to all batches of a round."""
        if self.ranks.alone:
            return list(own)
        if self._companions is not None and self._companions.place.needs_repeats:
            self._announces = False
            while self._companions.most(0):
                spare()
            self._announces = True
        self.ranks.note(self._batches, "comparing")
        self.ranks.meet()
        place = self.ranks.place
        everyone: list[tuple[Group, Any]] = self.ranks.gather(
            lambda: (place.predict, own if place.has_outputs else None)
        )
        for rank, (predict, answers) in enumerate(everyone):
            if answers is not None and not _near(answers, everyone[predict[0]][1]):
                got = f"other answers on rank {rank} than on rank {predict[0]} to the same requests"
                raise ConfigError(
                    describe("outputs of the model", got, "the same on processes that share a model", SAY)
                )
        of_coordinates = [everyone[everyone[leader][0][0]][1] for leader in place.leaders]
        return [of_coordinates[k % place.count][k // place.count] for k in range(count)]

    @contextmanager
    def in_step(self, model: Any) -> Iterator[Any]:
        """A model whose every call is announced to the processes whose forwards communicate with it."""
        if self._companions is None or not self._companions.place.needs_repeats:
            yield model
            return
        self._announces = True
        if isinstance(model, nn.Module):
            hook = model.register_forward_pre_hook(self._announce, prepend=True)
            try:
                yield model
            finally:
                hook.remove()
            return

        @functools.wraps(model)
        def announced(*args: Any, **kwargs: Any) -> Any:
            self._announce()
            return model(*args, **kwargs)

        yield announced

    def _announce(self, *_: Any) -> None:
        if self._announces and self._companions is not None:
            self._companions.most(1)

    def agreed(self, choose: Callable[[Any], int]) -> Callable[[Any], int]:
        """The next token as the first process with outputs chooses it, on all that share the model."""
        if self._companions is None or len(self._companions.place.members) == 1:
            return choose
        companions = self._companions

        def choice(logits: Any) -> int:
            return companions.largest(choose(logits) if companions.place.counts else -1)

        return choice


def _near(answers: Any, others: Any) -> bool:
    """Whether two processes have the same texts, and log likelihoods that differ by rounding only."""
    if isinstance(answers, float):
        return (
            answers == others
            or math.isclose(answers, others, rel_tol=_NEAR, abs_tol=_NEAR)
            or (math.isnan(answers) and math.isnan(others))
        )
    if isinstance(answers, list | tuple):
        return len(answers) == len(others) and all(map(_near, answers, others))
    return isinstance(answers, bool) or bool(answers == others)  # near ties may be broken otherwise
