"""Whether all processes have the same model: a digest of its tensors, compared before anything is measured."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn

from assay.devices.placement import to_host
from assay.errors import ConfigError, describe
from assay.render.text import first_names

MOST_NAMES = 3
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(frozen=True)
class ModelDigest:
    """What tells one model from another.

    Attributes:
        kind: the class of a module, or the name of a function.
        tensors: by name, a digest of the dtype, the shape and all bits of a parameter or buffer. Left out are tensors
            of which each process has a part (`DTensor`, `FullyShardedDataParallel`).
    """

    kind: str
    tensors: dict[str, str]

    @classmethod
    def of(cls, model: Any, without: Sequence[Tensor] = ()) -> Self:
        """The digest of a model but for some buffers; of what is no module only the kind."""
        if not isinstance(model, nn.Module):
            return cls(str(getattr(model, "__qualname__", type(model).__qualname__)), {})
        skipped = set(map(id, without))
        buffers = ((name, buffer) for name, buffer in model.named_buffers() if id(buffer) not in skipped)
        every = [*model.named_parameters(), *buffers]
        if any(type(each).__name__ == "FullyShardedDataParallel" for each in model.modules()):
            every = []
        whole = [(name, tensor.detach()) for name, tensor in every if not hasattr(tensor, "to_local")]
        return cls(type(model).__qualname__, {name: _digest(tensor) for name, tensor in whole})


def check_models(models: Mapping[int, ModelDigest]) -> None:
    """Raise on all processes where they do not have the same model.

    Args:
        models: the digest of each process that is to have it, by rank; the same on all of them.

    Raises:
        ConfigError: names the processes that differ from most others, and the tensors.
    """
    ranks, known = list(models), list(models.values())
    texts = [repr((each.kind, sorted(each.tensors.items()))) for each in known]
    if len(set(texts)) <= 1:
        return
    most = Counter(texts).most_common(1)[0][0]  # the first of those that are as frequent
    like = known[texts.index(most)]
    others = [rank for rank, text in zip(ranks, texts, strict=True) if text != most]
    other = models[others[0]]
    names = sorted(name for name, _ in like.tensors.items() ^ other.tensors.items())
    unequal = list(dict.fromkeys(names)) or [f"{other.kind} for {like.kind}"]
    shown = first_names(unequal, MOST_NAMES)
    got = f"another model on {_listed(others)} than on rank {ranks[texts.index(most)]} ({shown})"
    do = "Load the same weights on every rank, or broadcast those of rank 0 to all before this call"
    raise ConfigError(describe("model", got, f"the same on all {len(ranks)} ranks", do))


def _listed(numbers: Sequence[int]) -> str:
    return f"rank{'s' * (len(numbers) > 1)} {first_names(numbers, 8)}"


def _digest(tensor: Tensor) -> str:
    """A digest of all bits: their sum, which the device computes, and some 256 of the elements in their order."""
    digest = hashlib.blake2b(f"{tensor.dtype} {tuple(tensor.shape)}".encode(), digest_size=8)
    if tensor.numel() and _has_bits(tensor):
        flat = (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).reshape(-1)
        bits = flat.view(_BITS[flat.element_size()])
        for part in (bits[:: max(1, bits.numel() // 256)].to(torch.int64), bits.sum(dtype=torch.int64)):
            digest.update(to_host(part).numpy().tobytes())
    return digest.hexdigest()


def _has_bits(tensor: Tensor) -> bool:
    """Whether the elements lie in memory; of tensors of other libraries that is not known."""
    is_plain = type(tensor) is Tensor and tensor.layout == torch.strided
    return is_plain and not (tensor.is_meta or tensor.is_quantized)
