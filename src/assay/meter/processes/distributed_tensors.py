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

from assay.devices.policies import policy
from assay.errors import ConfigError, SyncError, describe

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


def whole(value: Any) -> Tensor:
    """All of a `DTensor`, gathered from the other processes, which must call this, too; a plain tensor unchanged."""
    gathered: Any = value.full_tensor() if is_distributed(value) else value
    result: Tensor = gathered.wait() if type(gathered).__name__ == "AsyncCollectiveTensor" else gathered
    return result


def first_largest(scores: Tensor, start: int, classes: int, groups: Sequence[Any]) -> Tensor:
    """The class with the largest score, the lowest of equal ones, in one reduction of 8 bytes a row (float64: two).

    Args:
        scores: the part of this process, `(N, C)`.
        start: the index of its first class.
        classes: how many all processes have.
        groups: the processes that have the other parts.

    Returns:
        int64 of shape `(N,)`; `classes` where a score of the row is NaN, as `assay.decide.first_largest` has it.
    """
    if not scores.shape[1]:
        own = torch.full((len(scores),), _LOWEST * (1 << _BITS), dtype=torch.int64, device=scores.device)
        wide = torch.full_like(own, torch.iinfo(torch.int64).min)
        best = torch.zeros_like(own)
    else:
        best = scores.argmax(1)
        wide = _ordered(scores.gather(1, best[:, None])).squeeze(1)
        best = best + start
        own = wide * (1 << _BITS) + ((1 << _BITS) - 1 - best)
    if scores.dtype == torch.float64:
        largest = _reduced(wide.clone(), dist.ReduceOp.MAX, groups)
        beaten = torch.full_like(best, torch.iinfo(torch.int64).max)
        found = _reduced(torch.where(torch.eq(wide, largest), best, beaten), dist.ReduceOp.MIN, groups)
        return torch.where(torch.eq(largest, torch.iinfo(torch.int64).max), classes, found)
    key = _reduced(own, dist.ReduceOp.MAX, groups)
    last = (1 << _BITS) - 1
    return torch.where(torch.eq(key >> _BITS, last), classes, last - (key & last))


def classes_before(scores: Tensor, start: int, target: Tensor, groups: Sequence[Any]) -> Tensor:
    """How many classes come before the target's: those with a higher score, or the same and a lower index.

    Two reductions of 8 bytes a row.

    Args:
        scores: the part of this process, `(N, C)`.
        start: the index of its first class.
        target: a class for each row, `(N,)`.
        groups: the processes that have the other parts.
    """
    bits = _reduced(_bits_at(scores, target - start), dist.ReduceOp.SUM, groups)
    own = bits.view(torch.float64).to(scores.dtype)[:, None]
    classes = torch.arange(start, start + scores.shape[1], device=scores.device)
    before = torch.eq(scores, own).logical_and_(torch.lt(classes, target[:, None])).logical_or_(torch.gt(scores, own))
    return _reduced(before.sum(1), dist.ReduceOp.SUM, groups)


def losses_at(logits: Tensor, start: int, target: Tensor, groups: Sequence[Any], classes: int) -> Tensor:
    """`-log softmax(logits)[target]` where classes lie on several processes: two reductions of 8 and 16 bytes a row.

    Args:
        logits: the part of this process, `(N, C)`.
        start: the index of its first class.
        target: a class for each row, `(N,)`.
        groups: the processes that have the other parts.
        classes: how many all processes have.

    Returns:
        float32 (float64 for such logits), rounded once; NaN where a logit is NaN or infinite, or all are -inf.
    """
    rows = max(1, policy(logits.device).chunk_elements.value // classes)  # equally many on all that have classes
    parts = [_losses_at(logits[k : k + rows], start, target[k : k + rows], groups) for k in range(0, len(logits), rows)]
    dtype = torch.float64 if logits.dtype == torch.float64 else torch.float32
    return torch.cat(parts).to(dtype) if parts else torch.empty(0, dtype=dtype, device=logits.device)


def _losses_at(logits: Tensor, start: int, target: Tensor, groups: Sequence[Any]) -> Tensor:
    wide = logits.to(torch.float64)
    largest = (
        wide.amax(1) if wide.shape[1] else torch.full((len(wide),), -torch.inf, dtype=torch.float64, device=wide.device)
    )
    top = _from_ordered(_reduced(_ordered(largest), dist.ReduceOp.MAX, groups))
    shift = torch.where(torch.isfinite(top), top, 0.0)
    terms = torch.exp(wide - shift[:, None]).nan_to_num(0.0, 0.0, 0.0) * (1 << _UNITS)
    total = terms.round().to(torch.int64).sum(1)
    total, bits = _reduced(torch.stack([total, _bits_at(wide, target - start)]), dist.ReduceOp.SUM, groups)
    losses = torch.log(total.to(torch.float64) / (1 << _UNITS)) - (bits.view(torch.float64) - shift)
    return torch.where(torch.isfinite(top), losses, torch.nan)


def _bits_at(values: Tensor, place: Tensor) -> Tensor:
    """The bits of the float64 of one value a row, of rows that have it here; else 0: one process has it."""
    if not values.shape[1]:
        return torch.zeros_like(place)
    is_own = torch.ge(place, 0) & torch.lt(place, values.shape[1])
    known = values.gather(1, place.clamp(0, values.shape[1] - 1)[:, None]).squeeze(1).to(torch.float64)
    return torch.where(is_own, known.view(torch.int64), 0)


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
