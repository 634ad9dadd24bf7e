"""Where tensors came to be on their device: the line of Python that made each of them, or moved it there."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import torch  # noqa: F401 - the example
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from assay.pretend.events import Frame, stack

MANY = 10_000  # storages that are noted before those that are gone are forgotten


class Creation(NamedTuple):
    """How and where a tensor came to be on its device."""

    how: str
    lines: tuple[Frame, ...]


class Origins(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is open, notes for every tensor that torch makes the lines of Python; keeps no tensor alive.

    What is computed of tensors on the same device has the origin of the first of them.

    Example:
        >>> with Origins() as origins:
        ...     weights = torch.arange(3)
        ...     scaled = weights * 2
        >>> origins.of(scaled).how, origins.of(scaled) == origins.of(weights)
        ('made', True)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._noted: dict[int, tuple[StorageWeakRef, Creation]] = {}
        self._next_purge = MANY

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        inputs: list[Tensor] | None = None
        creation: Creation | None = None
        for tensor in tree_leaves(result):
            if isinstance(tensor, Tensor) and self.of(tensor) is None and (storage := _storage(tensor)) is not None:
                inputs = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)] if inputs is None else inputs
                known = (self.of(x) for x in inputs if x.device == tensor.device)
                creation = next((each for each in known if each), None) or creation or self._here(tensor, inputs)
                self._noted[storage._cdata] = StorageWeakRef(storage), creation  # type: ignore[no-untyped-call]
        self._purge()
        return result

    def of(self, tensor: Tensor) -> Creation | None:
        """The origin of a tensor, or ``None`` where torch did not make it while this was open."""
        storage = _storage(tensor)
        noted = self._noted.get(storage._cdata) if storage is not None else None
        return noted[1] if noted and not _is_freed(noted[0]) else None

    def _here(self, tensor: Tensor, inputs: list[Tensor]) -> Creation:
        moved = any(x.device != tensor.device for x in inputs)
        return Creation("moved" if moved else "made", stack(sys._getframe(2)))

    def _purge(self) -> None:
        if len(self._noted) > self._next_purge:
            self._noted = {key: noted for key, noted in self._noted.items() if not _is_freed(noted[0])}
            self._next_purge = max(MANY, 2 * len(self._noted))


def _is_freed(noted: StorageWeakRef) -> bool:
    return bool(noted.expired())  # type: ignore[no-untyped-call]


def _storage(tensor: Tensor) -> Any:
    """The memory of a tensor; ``None`` for those that have none of their own (sparse ones, some subclasses)."""
    try:
        return tensor.untyped_storage()
    except (NotImplementedError, RuntimeError):
        return None
