"""Trees of tensors, as batches and outputs are: their rows, some of them, and what they look like in a message."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.stats.sampling import mixed

_DEEP = 3
_LONG = 8
_MARK_VALUES = 64  # values of a row, more or less


def branches(tree: Any) -> Mapping[Any, Any] | None:
    """The parts of a mapping, a named tuple or a dataclass by name; None for anything else."""
    if isinstance(tree, Mapping):
        return tree
    if isinstance(tree, tuple) and hasattr(tree, "_asdict"):
        named: dict[str, Any] = tree._asdict()
        return named
    if is_dataclass(tree) and not isinstance(tree, type):
        return {field.name: getattr(tree, field.name) for field in fields(tree)}
    return None


def mapped(tree: Any, leaf: Callable[[Any], Any]) -> Any:
    """A tree of the same types with what `leaf` gives for tensors, arrays, lists of plain values and other leaves."""
    if isinstance(tree, Mapping):
        return _like(tree, {key: mapped(part, leaf) for key, part in tree.items()})
    if isinstance(tree, tuple) or (isinstance(tree, list) and any(_has_parts(part) for part in tree)):
        parts = [mapped(part, leaf) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    if is_dataclass(tree) and not isinstance(tree, type):
        copied = copy.copy(tree)
        for field in fields(tree):  # the dataclass may be frozen
            object.__setattr__(copied, field.name, mapped(getattr(tree, field.name), leaf))
        return copied
    return leaf(tree)


def _like(tree: Mapping[Any, Any], parts: dict[Any, Any]) -> Any:
    if type(tree) is dict:
        return parts
    copied = copy.copy(tree)  # keeps the class that a tokenizer or a model gave
    try:
        for key, part in parts.items():
            copied[key] = part  # type: ignore[index]
    except TypeError:
        return parts
    return copied


def _has_parts(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray | Mapping | tuple | list) or is_dataclass(value)


def leaves(tree: Any) -> Iterator[Any]:
    """The leaves of a tree, in order."""
    named = branches(tree)
    if named is not None:
        tree = tuple(named.values())
    if isinstance(tree, tuple) or (isinstance(tree, list) and any(_has_parts(part) for part in tree)):
        for part in tree:
            yield from leaves(part)
    else:
        yield tree


def row_count(tree: Any) -> int | None:
    """How many samples a batch holds: the length of its first tensor with a dimension; else of its first list.

    Example:
        >>> row_count({"image": torch.zeros(3, 8, 8), "scale": torch.tensor(2.0)})
        3
    """
    lists: int | None = None
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor | np.ndarray) and leaf.ndim:
            return int(leaf.shape[0])
        if isinstance(leaf, list) and lists is None:
            lists = len(leaf)
    return lists


def take(tree: Any, rows: int, index: slice | list[int]) -> Any:
    """Some of the rows of a batch.

    What has as many rows as the batch is cut: tensors, arrays, and lists of plain values. All else is unchanged.

    Args:
        tree: the batch.
        rows: how many rows it has.
        index: which of them to take.

    Example:
        >>> take({"x": torch.arange(4), "names": ["a", "b", "c", "d"], "scale": 2.0}, 4, slice(1, 3))
        {'x': tensor([1, 2]), 'names': ['b', 'c'], 'scale': 2.0}
    """

    def cut(leaf: Any) -> Any:
        if isinstance(leaf, Tensor | np.ndarray):
            return leaf[index] if leaf.ndim and leaf.shape[0] == rows else leaf
        if isinstance(leaf, list) and len(leaf) == rows:
            return leaf[index] if isinstance(index, slice) else [leaf[k] for k in index]
        return leaf

    if isinstance(tree, list) and len(tree) == rows and all(isinstance(part, Tensor) for part in tree) and rows > 2:
        return tree[index] if isinstance(index, slice) else [tree[k] for k in index]  # one tensor a sample
    return mapped(tree, cut)


def structure(tree: Any, depth: int = 0) -> str:
    """What a batch looks like, for messages.

    Example:
        >>> structure({"image": torch.zeros(2, 3), "label": torch.tensor([0, 1]), "name": ["a", "b"]})
        "{'image': float32 (2, 3), 'label': int64 (2,), 'name': list of 2 str}"
    """
    if isinstance(tree, Tensor | np.ndarray):
        what = "array of " if isinstance(tree, np.ndarray) else ""
        return f"{what}{str(tree.dtype).removeprefix('torch.')} {tuple(tree.shape)}"
    named = branches(tree)
    if depth >= _DEEP:
        return type(tree).__name__
    if named is not None:
        parts = [f"{key!r}: {structure(part, depth + 1)}" for key, part in list(named.items())[:_LONG]]
        parts += ["…"] * (len(named) > _LONG)
        return f"{'' if type(tree) is dict else type(tree).__name__}{{{', '.join(parts)}}}"
    if isinstance(tree, list) and tree and not any(_has_parts(part) for part in tree):
        return f"list of {len(tree)} {type(tree[0]).__name__}"
    if isinstance(tree, list | tuple):
        parts = [structure(part, depth + 1) for part in tree[:_LONG]] + ["…"] * (len(tree) > _LONG)
        return f"[{', '.join(parts)}]" if isinstance(tree, list) else f"({', '.join(parts)})"
    return type(tree).__name__


def digest(tree: Any, most_bytes: int | None = None) -> str:
    """A fingerprint of the values of a tree that is the same in every process; objects count by their type.

    Args:
        tree: a batch or a sample.
        most_bytes: how much of a tensor is read from its beginning and its end; None for all of it.
    """
    result = hashlib.blake2b(digest_size=16)
    for leaf in leaves(tree):
        if isinstance(leaf, Tensor):
            result.update(f"{leaf.dtype}{tuple(leaf.shape)}".encode())
            for part in _ends(leaf.detach().reshape(-1), most_bytes):
                result.update(part.cpu().contiguous().view(torch.uint8).numpy().tobytes())
        elif isinstance(leaf, np.ndarray):
            result.update(f"{leaf.dtype}{leaf.shape}".encode() + (b"" if leaf.dtype.hasobject else leaf.tobytes()))
        elif isinstance(leaf, str | bytes | int | float | bool | list) or leaf is None:
            result.update(repr(leaf).encode())
        else:
            pixels = getattr(leaf, "tobytes", None)  # a PIL image
            result.update(type(leaf).__name__.encode() + (pixels() if callable(pixels) else b""))
    return result.hexdigest()


def _ends(flat: Tensor, most_bytes: int | None) -> list[Tensor]:
    """The beginning and the end of a long tensor; all of a short one."""
    most = flat.numel() if most_bytes is None else max(1, most_bytes // flat.element_size())
    return [flat] if flat.numel() <= 2 * most else [flat[:most], flat[-most:]]


def row_marks(tree: Any, rows: int) -> NDArray[np.int64]:
    """A number for each row of a batch: its upper 16 bits are of the layout, the others of the values.

    Rows of one layout with different marks are different. Of long rows only some values are read.

    Example:
        >>> marks = row_marks({"x": torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 3.0]])}, 3)
        >>> bool(marks[0] == marks[1]), bool(marks[0] == marks[2])
        (True, False)
    """
    total = np.zeros(rows, np.uint64)
    layout = hashlib.blake2b(digest_size=2)
    for number, leaf in enumerate(leaves(tree)):
        words = _words(leaf, rows)
        if words is not None:
            layout.update(repr((number, words.shape[1:], getattr(leaf, "shape", ())[1:])).encode())
            with np.errstate(over="ignore"):
                factors = mixed(np.arange(words.shape[1], dtype=np.uint64) + np.uint64(number << 32)) | np.uint64(1)
                total = mixed(total + (mixed(words) * factors).sum(1, dtype=np.uint64))
    top = np.uint64(int.from_bytes(layout.digest(), "little")) << np.uint64(48)
    marks: NDArray[np.int64] = (top | (total >> np.uint64(16))).view(np.int64)
    return marks


def _words(leaf: Any, rows: int) -> NDArray[np.uint64] | None:
    """Some values of each row as numbers of 64 bits; None where a leaf has not one row a sample."""
    if isinstance(leaf, list) and len(leaf) == rows:
        result = [hashlib.blake2b(repr(each).encode("utf-8", "surrogatepass"), digest_size=8).digest() for each in leaf]
        return np.frombuffer(b"".join(result), np.uint64)[:, None]
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biufc":
        leaf = torch.from_numpy(np.ascontiguousarray(leaf))
    if not isinstance(leaf, Tensor) or not leaf.ndim or leaf.shape[0] != rows or leaf.layout != torch.strided:
        return None
    flat = leaf.detach().reshape(rows, -1)
    step = max(1, flat.shape[1] // _MARK_VALUES)
    raw = to_host(flat[:, ::step]).resolve_conj().resolve_neg().contiguous().view(torch.uint8).numpy()
    return np.pad(raw, ((0, 0), (0, -raw.shape[1] % 8))).view(np.uint64)
