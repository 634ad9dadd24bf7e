"""What a process counts of an update with `DTensor`; scores over classes that lie on several processes stay there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from assay.decide import Argmax, TopK
from assay.errors import ConfigError, ShapeError, describe
from assay.meter.counting.tally_plan import TallyPlan
from assay.meter.inputs.arguments import Arguments
from assay.meter.processes.distributed_tensors import (
    LocalPart,
    classes_before,
    first_largest,
    is_distributed,
    local_part,
    losses_at,
)
from assay.tally.base import Tally
from assay.tally.labels.confusion import ClassCounts, Confusion
from assay.tally.labels.labels import Labels
from assay.tally.rows.row_terms import KnownTokenLogLoss, TokenLogLoss
from assay.tally.scores.losses import KnownLogLoss, NegativeLogLikelihood
from assay.tally.sums.row_sums import RowSums

_OF_POSITIONS = (ClassCounts, Confusion, RowSums)
"""Tallies that count each position of a sample for itself, so that processes may have some of them."""


@dataclass(frozen=True)
class Share:
    """What this process counts of an update.

    Attributes:
        ranks: the processes that together have all of it.
        arguments: plain tensors by name; of none of the samples where another process counts them.
        batches: where scores do not leave their processes: for each tally of the plan one that counts into the same
            state, and what it takes instead of scores. None where the tallies take `arguments`.
        rows: how many samples these are.
    """

    ranks: frozenset[int]
    arguments: Mapping[str, Any]
    batches: Sequence[tuple[Tally, Arguments]] | None = None
    rows: int = 0

    @property
    def main(self) -> tuple[Any, Any, Any]:
        """`preds`, target and weights."""
        return self.arguments.get("preds"), self.arguments.get("target"), self.arguments.get("weights")

    @property
    def columns(self) -> dict[str, Any]:
        """The arguments that have names of their own."""
        return {name: value for name, value in self.arguments.items() if name not in ("preds", "target", "weights")}


@dataclass(frozen=True)
class _Reading:
    """What a tally needs of scores over classes.

    Attributes:
        tally: counts it into the same state.
        dimension: of the classes.
        top_k: from how many of the highest scores a label is decided; 0 for the loss of the target.
    """

    tally: Tally
    dimension: int
    top_k: int = 0


def own_share(arguments: Mapping[str, Any], plan: TallyPlan, strict: bool = False) -> Share:
    """What this process counts of an update with `DTensor`: its samples, or none where another one counts them.

    Args:
        arguments: `preds`, which is a `DTensor`, target, weights and columns by name.
        plan: what is counted of them.
        strict: see `Meter`.

    Raises:
        ConfigError: it is not known how the parts add up.
        ShapeError: an argument has other samples than `preds`.
    """
    preds = arguments["preds"]
    part = local_part(preds, "preds")
    others = sorted(set(part.sharded) - {0})
    if not others:
        own = {"preds": part.tensor, **_others(arguments, part, [0])}
        return Share(part.ranks, own if part.is_first else {name: value[:0] for name, value in own.items()})
    readings = _readings(plan, preds, others)
    dimension = readings[0].dimension
    kept = [each for each in range(preds.ndim) if each != dimension]
    own = _others(arguments, part, kept)
    shape = list(part.tensor.shape)
    shape[dimension] = preds.shape[dimension]
    # Checks read no scores: each value stands for a row of them.
    like = torch.empty((), dtype=part.tensor.dtype, device=part.tensor.device).expand(shape)
    columns = {name: value for name, value in own.items() if name not in ("target", "weights")}
    batch = plan.checked(plan.arguments(like, own.get("target"), own.get("weights"), columns), strict)
    known = _known(part, preds.shape[dimension], batch.tensors[1], readings)
    of_classes, of_positions = (
        all(dist.get_rank(group) == 0 for each in dimensions for group in part.sharded.get(each, ()))
        for dimensions in ((dimension,), [each for each in kept if each])
    )
    if not (part.is_first and of_classes):
        batch = batch.rows(slice(0, 0))
    given = {
        key: batch._replace(tensors=[values[: len(batch.preds)], *batch.tensors[1:]]) for key, values in known.items()
    }
    batches = [(each.tally, given[each.top_k]) for each in readings]
    return Share(part.ranks, {}, batches, len(batch.preds) if of_positions else 0)


def _readings(plan: TallyPlan, preds: Any, sharded: Sequence[int]) -> list[_Reading]:
    """What each tally needs of the scores.

    Raises:
        ConfigError: one needs all of them, or all positions of a sample.
    """
    found = {tally: _reading(tally, preds) for tally in plan.tallies}
    readings = [each for each in found.values() if each is not None]
    dimensions = {each.dimension for each in readings}
    wanting = [tally for tally, each in found.items() if each is None or not _takes(tally, each, sharded)]
    if not wanting and len(dimensions) == 1:
        return readings
    got = f"a DTensor that is sharded over dimension {', '.join(map(str, sharded))}"
    metrics = plan.beyond([tally for tally in plan.tallies if tally not in wanting]) or list(plan.metrics)
    expected = (
        f"all scores of a sample for {', '.join(metrics)}: only labels of classes (argmax, top_k), LogLoss of logits "
        "and Perplexity are counted from parts"
    )
    do = "Pass preds.redistribute(placements=[...]) with Shard(0) or Replicate(), or those metrics to another meter"
    raise ConfigError(describe("preds", got, expected, do))


def _reading(tally: Tally, preds: Any) -> _Reading | None:
    """What a tally needs of scores; None for all of them."""
    labels = getattr(tally, "labels", None)
    if preds.ndim < 2 or not preds.is_floating_point():
        return None
    if isinstance(labels, Labels):
        decision = labels.decision
        if isinstance(decision, Argmax | TopK) and not labels.num_labels and labels.num_classes == preds.shape[1]:
            of_labels: Any = tally
            return _Reading(replace(of_labels, labels=replace(labels, decision=Argmax())), 1, decision.top_k)
    elif isinstance(tally, RowSums) and type(tally.term) is TokenLogLoss:
        term = KnownTokenLogLoss(tally.term.ignore_index, preds.shape[-1])
        return _Reading(replace(tally, term=term), preds.ndim - 1)
    elif isinstance(tally, RowSums) and type(tally.term) is NegativeLogLikelihood:
        data = tally.term.data
        if data.logits and data.labels.multiclass and data.labels.num_classes == preds.shape[1]:
            return _Reading(replace(tally, term=KnownLogLoss(data)), 1)
    return None


def _takes(tally: Tally, reading: _Reading, sharded: Sequence[int]) -> bool:
    """Whether a tally counts parts of samples that are sharded over these dimensions."""
    return set(sharded) <= {reading.dimension} or (type(tally) in _OF_POSITIONS and not tally.columns)


def _known(part: LocalPart, classes: int, target: Tensor | None, readings: Sequence[_Reading]) -> dict[int, Tensor]:
    """What the tallies take instead of scores, of the shape of the target: labels by `top_k`, and losses under 0.

    All processes that have parts of the same samples must call it.
    """
    assert target is not None, "the layout was checked"
    dimension = readings[0].dimension
    groups, start = part.sharded.get(dimension, ()), part.start[dimension]
    size = part.tensor.shape[dimension]
    scores = part.tensor.detach().movedim(dimension, -1).reshape(target.numel(), size)
    wanted = target.to(part.tensor.device).reshape(-1).to(torch.int64).clamp(0, classes - 1)
    known: dict[int, Tensor] = {}
    kinds = {each.top_k for each in readings}
    if kinds - {0}:
        best = first_largest(scores, start, classes, groups)
        before = classes_before(scores, start, wanted, groups) if max(kinds) > 1 else best
        is_valid = torch.lt(best, classes)
        for k in kinds - {0}:
            known[k] = best if k == 1 else torch.where(torch.lt(before, k) & is_valid, wanted, best)
    if 0 in kinds:
        known[0] = losses_at(scores, start, wanted, groups, classes)
    return {k: values.view(target.shape) for k, values in known.items()}


def _others(arguments: Mapping[str, Any], part: LocalPart, dimensions: Sequence[int]) -> dict[str, Any]:
    """Target, weights and columns of the samples, or parts of samples, of this process.

    Args:
        arguments: all of them, with `preds`.
        part: what this process has of `preds`.
        dimensions: those of `preds` that the others have, too.
    """
    whole = [arguments["preds"].shape[each] for each in dimensions]
    begin, here = [part.start[each] for each in dimensions], [part.tensor.shape[each] for each in dimensions]
    found = {}
    for name, value in arguments.items():
        if name == "preds" or value is None:
            continue
        if is_distributed(value):
            own = local_part(value, name)
            cut = [k for k in range(min(value.ndim, len(whole))) if not k or here[k] != whole[k]]
            is_same = all((own.start[k], own.tensor.shape[k]) == (begin[k], here[k]) for k in cut)
            if not is_same or not set(own.sharded) <= set(cut):
                got = f"a DTensor with the placements {', '.join(map(str, value.placements))}"
                do = f"Redistribute {name} so that each process has the same samples of both"
                raise ConfigError(describe(name, got, "the samples of preds", do))
            found[name] = own.tensor
        elif not isinstance(value, Tensor) or not value.ndim or len(value) not in (whole[0], here[0]):
            got = f"{len(value)} samples" if isinstance(value, Tensor) and value.ndim else type(value).__name__
            expected = f"{whole[0]} of all processes, or {here[0]} of this one"
            raise ShapeError(describe(name, got, expected, "Pass as many as preds has"))
        else:
            sizes = zip(value.shape, whole, begin, here, strict=False)
            is_cut = ((size == of_all != own, start, own) for size, of_all, start, own in sizes)
            found[name] = value[tuple(slice(start, start + own) if cut else slice(None) for cut, start, own in is_cut)]
    return found
