"""How processes begin to measure one model together: what each says of it, where each stands, and who meets whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from assay.evaluation.processes.arrange import Introduction, arranged, groups_of, introduce
from assay.evaluation.processes.companions import Companions, is_of_a_collective
from assay.evaluation.processes.model_digest import ModelDigest, check_models
from assay.evaluation.processes.place import same_models
from assay.evaluation.processes.ranks import Ranks


@dataclass(frozen=True)
class Hello:
    """What a process tells the others of its model."""

    introduction: Introduction
    model: ModelDigest


def hello(model: Any, mesh: Any, data_group: Any, ranks: Ranks, without: Sequence[Tensor] = ()) -> Hello | None:
    """What this process tells the others; None where there are none.

    Args:
        model: what is measured.
        mesh: see `evaluate`.
        data_group: see `evaluate`.
        ranks: all processes.
        without: buffers of the model that may differ.

    Raises:
        ConfigError: the model is shared among processes in a way that is not understood.
    """
    if ranks.alone:
        return None
    return Hello(introduce(model, mesh, data_group, ranks.own, ranks.count), ModelDigest.of(model, without))


def join(everyone: Sequence[Hello], ranks: Ranks) -> None:
    """Give this process its place among the others.

    Args:
        everyone: what each process said, by rank.
        ranks: all processes; `place` of them is set.

    Raises:
        ConfigError: processes have different models, or it is not known how they stand to each other.
    """
    places = arranged([each.introduction for each in everyone])
    for part in same_models(places, everyone[ranks.own].introduction.is_said):
        check_models({rank: everyone[rank].model for rank in part})
    ranks.place = places[ranks.own]


def companions_of(model: Any, mesh: Any, data_group: Any, ranks: Ranks) -> Companions | None:
    """The processes that this one shares a model with; None where it is whole on each."""
    if not ranks.place.communicates:
        return None
    return Companions(ranks.place, ranks.store, ranks.timeout_s, groups_of(model, mesh, data_group))


@contextmanager
def connected(companions: Companions | None, ranks: Ranks) -> Iterator[None]:
    """The processes that share a model find each other; a `RankError` where one does not come."""
    if companions is None:
        yield
        return
    with ExitStack() as stack:
        ranks.note(0, "loading")
        try:
            stack.enter_context(companions)
        except Exception as error:
            if is_of_a_collective(error):
                raise ranks.left_alone(error) from error
            raise
        yield


def grad_mode_of(ranks: Ranks) -> Callable[[], AbstractContextManager[Any]]:
    """What the model of these processes runs in: torch gathers whole weights of shared ones in `inference_mode`."""
    return torch.no_grad if ranks.place.communicates else torch.inference_mode
