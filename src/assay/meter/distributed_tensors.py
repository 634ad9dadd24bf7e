"""`DTensor`: the part of one on this process, and what is known of sharded scores without gathering them.

Sums and maxima over integers have the same bits on any number of processes, so what is found of sharded scores is the
same however many processes share them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from assay.errors import ConfigError, ShapeError, SyncError, describe

_BITS = 31
_LOWEST = -(1 << _BITS)
_UNITS = 40
"""Exponentials are added up in units of 2^-40: of a row of 2^22 classes they still fit into int64."""


@dataclass(frozen=True)
class LocalPart:
    """What this process has of a `DTensor`.

    Attributes:
        tensor: the values.
        start: for each dimension where they begin in the whole tensor.
        sharded: for each dimension the groups of processes that have its other parts, outermost first.
        is_first: of processes that have the same part, this is the first one.
        ranks: all processes that have parts.
    """

    tensor: Tensor
    start: tuple[int, ...]
    sharded: Mapping[int, Sequence[Any]]
    is_first: bool
    ranks: frozenset[int]

    def block(self, whole: Tensor, dimensions: int) -> Tensor:
        """Of a whole tensor the elements that belong to this part, by its first dimensions."""
        return whole[tuple(slice(s, s + n) for s, n in zip(self.start, self.tensor.shape[:dimensions], strict=False))]


def is_distributed(value: Any) -> bool:
    """Whether each process has a part of a tensor (`DTensor`)."""
    return type(value) is not Tensor and hasattr(value, "device_mesh") and hasattr(value, "placements")


def local_part(value: Any, name: str) -> LocalPart:
    """What this process has of a `DTensor`.

    Args:
        value: the `DTensor`.
        name: of the argument, for errors.

    Raises:
        ConfigError: its placements are partial sums or another one that is not known, or this process has no part.
    """
    mesh, place = value.device_mesh, value.device_mesh.get_coordinate()
    known = ("Shard", "Replicate")
    if place is None or not value.ndim or any(type(each).__name__ not in known for each in value.placements):
        got = f"a DTensor with the placements {', '.join(map(str, value.placements))}"
        do = f"Pass {name}.redistribute(placements=[...]) with Replicate() or Shard(0)"
        raise ConfigError(describe(name, got, "parts that are sharded or replicated, on every process", do))
    start, length = [0] * value.ndim, list(value.shape)
    sharded: dict[int, list[Any]] = {}
    is_first = True
    for number, placement in enumerate(value.placements):
        if not placement.is_shard():
            is_first = is_first and place[number] == 0
            continue
        dimension = placement.dim % value.ndim
        size = -(-length[dimension] // mesh.size(number))  # as torch.chunk has it: the last parts may be empty
        begin = min(size * place[number], length[dimension])
        start[dimension], length[dimension] = start[dimension] + begin, min(size, length[dimension] - begin)
        sharded.setdefault(dimension, []).append(mesh.get_group(number))
    tensor = plain(value)
    if list(tensor.shape) != length:
        got = f"a part of shape {tuple(tensor.shape)} on this process"
        do = "Make it with distribute_tensor, or redistribute it"
        raise ConfigError(
            describe(name, got, f"{tuple(length)}, as {', '.join(map(str, value.placements))} has it", do)
        )
    return LocalPart(tensor, tuple(start), sharded, is_first, frozenset(mesh.mesh.flatten().tolist()))


def plain(value: Any) -> Tensor:
    """The tensor of this process."""
    tensor: Any = value.to_local()
    result: Tensor = tensor.wait() if type(tensor).__name__ == "AsyncCollectiveTensor" else tensor
    return result


def own_share(arguments: Mapping[str, Any], classes: int | None) -> tuple[dict[str, Any], frozenset[int]]:
    """What this process counts of an update with `DTensor`: its samples, or none where another one counts them.

    Args:
        arguments: `preds`, which is a `DTensor`, target, weights and columns by name.
        classes: where all metrics count the class with the highest score, how many there are; else None.

    Returns:
        The arguments as plain tensors, and the processes that together have all of them.

    Raises:
        ConfigError: it is not known how the parts add up.
        ShapeError: an argument has other samples than `preds`.
    """
    part = local_part(arguments["preds"], "preds")
    preds, counts = part.tensor, part.is_first
    rows, stop = len(preds), part.start[0] + len(preds)
    others = sorted(set(part.sharded) - {0})
    if others:
        if others != [1] or arguments["preds"].shape[1] != classes or not preds.is_floating_point():
            got = f"a DTensor that is sharded over dimension {', '.join(map(str, others))}"
            expected = "one that is sharded over samples, Shard(0), or replicated" + (
                "; over the classes of metrics that take the one with the highest score" if others == [1] else ""
            )
            do = "Pass preds.redistribute(placements=[...]); perplexity takes logits sharded over words or tokens"
            raise ConfigError(describe("preds", got, expected, do))
        groups = part.sharded[1]
        preds = first_largest(preds, part.start[1], 1, groups)
        counts = counts and all(dist.get_rank(group) == 0 for group in groups)
    shares: dict[str, Any] = {"preds": preds}
    for name, value in arguments.items():
        if name == "preds" or value is None:
            continue
        if is_distributed(value):
            own = local_part(value, name)
            if (own.start[0], len(own.tensor)) != (part.start[0], rows) or set(own.sharded) - {0}:
                got = f"a DTensor with the placements {', '.join(map(str, value.placements))}"
                do = f"Redistribute {name} so that each process has the same samples of both"
                raise ConfigError(describe(name, got, "the samples of preds", do))
            value = own.tensor
        elif isinstance(value, Tensor) and value.ndim and len(value) == len(arguments["preds"]) != rows:
            value = value[part.start[0] : stop]
        elif not isinstance(value, Tensor) or len(value) != rows:
            got = f"{len(value)} samples" if isinstance(value, Tensor) and value.ndim else type(value).__name__
            expected = f"{len(arguments['preds'])} of all processes, or {rows} of this one"
            raise ShapeError(describe(name, got, expected, "Pass as many as preds has"))
        shares[name] = value
    return shares if counts else {name: value[:0] for name, value in shares.items()}, part.ranks


def first_largest(scores: Tensor, start: int, dimension: int, groups: Sequence[Any]) -> Tensor:
    """The index of the largest score, the lowest of equal ones, in one reduction of 8 bytes a row (float64: two).

    Args:
        scores: the part of this process.
        start: the index of its first class.
        dimension: of the classes.
        groups: the processes that have the other parts.

    Returns:
        int64; of a row with NaN the first of them.
    """
    values = scores.movedim(dimension, -1)
    if not values.shape[-1]:
        own = torch.full(values.shape[:-1], _LOWEST * (1 << _BITS), dtype=torch.int64, device=scores.device)
        wide = torch.full_like(own, torch.iinfo(torch.int64).min)
        best = torch.zeros_like(own)
    else:
        best = values.argmax(-1, keepdim=True)
        wide = _ordered(values.gather(-1, best)).squeeze(-1)
        best = best.squeeze(-1) + start
        own = wide * (1 << _BITS) + ((1 << _BITS) - 1 - best)
    if scores.dtype == torch.float64:
        largest = _reduced(wide.clone(), dist.ReduceOp.MAX, groups)
        beaten = torch.full_like(best, torch.iinfo(torch.int64).max)
        return _reduced(torch.where(torch.eq(wide, largest), best, beaten), dist.ReduceOp.MIN, groups)
    return (1 << _BITS) - 1 - (_reduced(own, dist.ReduceOp.MAX, groups) & ((1 << _BITS) - 1))


def losses_at(logits: Tensor, start: int, target: Tensor, groups: Sequence[Any]) -> Tensor:
    """`-log softmax(logits)[target]` where classes lie on several processes: two reductions of 8 and 16 bytes a row.

    Args:
        logits: the part of this process, `(N, C)`.
        start: the index of its first class.
        target: a class for each row, `(N,)`.
        groups: the processes that have the other parts.

    Returns:
        float32 (float64 for such logits), rounded once; NaN where a logit is NaN or all are -inf.
    """
    wide = logits.to(torch.float64)
    largest = (
        wide.amax(1) if wide.shape[1] else torch.full((len(wide),), -torch.inf, dtype=torch.float64, device=wide.device)
    )
    top = _from_ordered(_reduced(_ordered(largest), dist.ReduceOp.MAX, groups))
    shift = torch.where(torch.isfinite(top), top, 0.0)
    terms = torch.exp(wide - shift[:, None]).nan_to_num(0.0, 0.0, 0.0) * (1 << _UNITS)
    total = terms.round().to(torch.int64).sum(1)
    place = target - start
    is_own = torch.ge(place, 0) & torch.lt(place, wide.shape[1])
    inside = place.clamp(0, max(0, wide.shape[1] - 1))[:, None]
    known = wide.gather(1, inside).squeeze(1) if wide.shape[1] else torch.zeros_like(top)
    bits = torch.where(is_own, known.view(torch.int64), 0)
    total, bits = _reduced(torch.stack([total, bits]), dist.ReduceOp.SUM, groups)
    losses = torch.log(total.to(torch.float64) / (1 << _UNITS)) - (bits.view(torch.float64) - shift)
    losses = torch.where(torch.isfinite(top), losses, torch.nan)
    return losses if logits.dtype == torch.float64 else losses.to(torch.float32)


def _reduced(numbers: Tensor, how: Any, groups: Sequence[Any]) -> Tensor:
    numbers = numbers.contiguous()
    for group in groups:
        dist.all_reduce(numbers, op=how, group=group)
    return numbers


def _ordered(values: Tensor) -> Tensor:
    """Integers that are ordered as floats are, with NaN above all; 32 bits for all dtypes but float64."""
    if values.dtype == torch.float64:
        bits = (values + 0.0).view(torch.int64)
        most = torch.iinfo(torch.int64).max
    else:
        bits = (values.to(torch.float32) + 0.0).view(torch.int32).to(torch.int64)
        most = (1 << _BITS) - 1
    ordered = torch.where(torch.lt(bits, 0), bits ^ most, bits)
    return torch.where(torch.isnan(values), most, ordered)


def _from_ordered(ordered: Tensor) -> Tensor:
    """The float64 of such an integer."""
    most = torch.iinfo(torch.int64).max
    values = torch.where(torch.lt(ordered, 0), ordered ^ most, ordered).view(torch.float64)
    return torch.where(torch.eq(ordered, most), torch.nan, values)


def groups_of(group: Any) -> list[Any]:
    """The process groups over which one after the other is summed up, for a group, a `DeviceMesh` or None."""
    return list(group.get_all_groups()) if type(group).__name__ == "DeviceMesh" else [group]


def check_shares(shared: frozenset[int], group: Any) -> None:
    """Raise where processes have counted parts of tensors that are not all added up.

    Args:
        shared: processes that have counted parts of the same tensors.
        group: a process group, a `DeviceMesh`, or None for all processes.

    Raises:
        SyncError: names them.
    """
    if not shared:
        return
    is_mesh = type(group).__name__ == "DeviceMesh"
    ranks = group.mesh.flatten().tolist() if is_mesh else dist.get_process_group_ranks(group or dist.group.WORLD)
    missing = sorted(shared - set(ranks))
    if missing:
        got = f"ranks {', '.join(map(str, sorted(ranks)))}, without {', '.join(map(str, missing))}"
        expected = f"all of ranks {', '.join(map(str, sorted(shared)))}, which counted parts of the same DTensor"
        raise SyncError(
            describe("sync", got, expected, "Call sync() for all processes, or pass the mesh of the DTensor")
        )
