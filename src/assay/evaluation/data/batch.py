"""How a batch becomes what the model takes and what its outputs are compared with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.data.columns import TARGETS
from assay.errors import ConfigError, ShapeError, describe
from assay.evaluation.nested_batch import branches, structure

Selector: TypeAlias = "str | int | Sequence[str | int] | Callable[[Any], Any] | None"
Shown: TypeAlias = "str | Sequence[str] | Mapping[str, Selector] | None"
"""What is shown of samples: names of parts of a batch, or selectors by name."""
Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

OUTPUTS = ("logits", "preds", "predictions", "scores", "out")
_WHOLE = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
_SAY = "Say it with inputs=, target= or preds=: a name, a position, or a function"


class Reader:
    """Finds the parts of a batch: the arguments of the model, the target, the weights, the ids.

    Args:
        model: what takes the inputs; its signature tells which names and how many positions it takes.
        inputs: a name or a position of what the model takes; several of them; or a function of the batch, whose tuple
            is passed as positions and whose mapping as keywords. None for what is usual.
        target: a name, a position or a function; None for what is usual.
        weights: the same, of the samples' weights; None for none.
        ids: the same, of the samples' ids; None for none.
        slices: the same by name, of the values by which samples are grouped.
        cluster: the same of the clusters of samples that depend on each other.
        columns: the same by name, of the named columns that metrics take.
        shown: the same by name, of what a report shows of samples.
        raw: predictions and targets are lists of raw samples, such as strings.
        preds: a name, a position or a function of what the model gives; None for what is usual.

    Usual are pairs `(x, y)`, tuples of as many parts as the model takes and a target, mappings, named tuples and
    dataclasses with a part that is named like a target, and single tensors without a target. Parts that are weights,
    ids, slices or shown are no inputs, unless the model takes one of that name.

    Raises:
        ConfigError: a part that was asked for is not there, or what is usual does not fit; shows the batch.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        *,
        inputs: Selector = None,
        target: Selector = None,
        weights: Selector = None,
        ids: Selector = None,
        preds: Selector = None,
        slices: Mapping[str, Selector] | None = None,
        cluster: Selector = None,
        columns: Mapping[str, Selector] | None = None,
        shown: Mapping[str, Selector] | None = None,
        raw: bool = False,
    ) -> None:
        self._inputs, self._target, self._weights, self._ids, self._preds = inputs, target, weights, ids, preds
        self._positions, self._needed, self._names = _signature(model)
        self._slices, self._columns, self.raw = dict(slices or {}), dict(columns or {}), raw
        self._shown, self._cluster = dict(shown or {}), cluster
        others = (*self._slices.values(), *self._columns.values(), *self._shown.values())
        aside = [each for each in (weights, ids, cluster, *others) if isinstance(each, str | int)]
        self._aside = set(aside) - (self._names or set())
        self._inputs_by_count: dict[int, list[int]] = {}
        self._plain = inputs is None and target is None and not self._aside
        self.has_columns = bool(self._columns)
        """Whether batches bring named columns."""
        self.notes_parts = bool(self._slices) or bool(self._shown) or cluster is not None or raw
        """Whether more is read of a batch than its ids and what is counted."""
        self.has_ids = ids is not None
        """Whether batches bring ids."""
        self.notes_nothing = not self.notes_parts and not self.has_ids
        """Whether no more is read of a batch than what is counted."""

    @property
    def weighted(self) -> bool:
        """Whether batches bring weights."""
        return self._weights is not None

    def ids(self, batch: Any) -> list[Any]:
        """The ids of the samples of a batch, integers or strings, as the batch brings them."""
        selection = _selected(batch, self._ids, "ids")
        if isinstance(selection, Tensor) and selection.dtype in _WHOLE and selection.ndim == 1:
            return selection.tolist()
        if isinstance(selection, Tensor | np.ndarray):
            selection = np.atleast_1d(selection).tolist()
        elif not isinstance(selection, Sequence) or isinstance(selection, str):
            do = "Pass batches, such as those of a DataLoader, and not samples"
            got = f"{type(selection).__name__} in {structure(batch)}"
            raise ConfigError(describe("ids", got, "one id for each sample of a batch", do))
        for each in selection:
            if not isinstance(each, int | str) or isinstance(each, bool):
                do = "Give one integer or string per sample"
                raise ConfigError(describe("ids", f"{type(each).__name__} in {structure(batch)}", "ids", do))
        _check_texts("ids", selection)
        return list(selection)

    def slices(self, batch: Any) -> dict[str, Any]:
        """The values of the samples of a batch that tell slices apart, as tensors or lists that nobody overwrites."""
        return {name: _copied(_selected(batch, each, f"slices: {name}"), name) for name, each in self._slices.items()}

    def clusters(self, batch: Any) -> Any:
        """The clusters of the samples of a batch; None where they are independent."""
        if self._cluster is None:
            return None
        return _copied(_selected(batch, self._cluster, "cluster"), "cluster")

    def columns(self, batch: Any) -> dict[str, Any]:
        """The named columns of a batch that metrics take."""
        return {name: _selected(batch, each, f"columns: {name}") for name, each in self._columns.items()}

    def shown(self, batch: Any) -> tuple[Any, ...]:
        """What is shown of the samples of a batch: a part for each name."""
        return tuple(_selected(batch, each, f"show: {name}") for name, each in self._shown.items())

    def read(self, batch: Any) -> tuple[Arguments, Any, Any]:
        """The arguments of the model, the target and the weights."""
        if self._plain and type(batch) in (tuple, list) and len(batch) == 2 and type(batch[0]) is Tensor:
            arguments: Arguments = ((batch[0],), {})
            target = batch[1]
        else:
            rest, target = self._targeted(batch)
            arguments = self._arguments(batch, rest)
        weights = None if self._weights is None else _selected(batch, self._weights, "weights")
        return arguments, target, weights

    def preds(self, outputs: Any) -> Any:
        """The predictions in what the model gave: a tensor, or raw samples as they are."""
        if self._preds is None and not self.raw and type(outputs) is Tensor:
            return outputs
        if self.raw:
            return _raw(outputs if self._preds is None else _selected(outputs, self._preds, "preds"))
        selection = _selected(outputs, self._preds, "preds") if self._preds is not None else _usual(outputs)
        if not isinstance(selection, Tensor):
            raise ConfigError(describe("preds", structure(selection), "a tensor", "Say it with preds="))
        return selection

    def _targeted(self, batch: Any) -> tuple[Any, Any]:
        """What is left for the model, and the target."""
        named = branches(batch)
        if named is not None:
            return self._targeted_by_name(batch, dict(named))
        if isinstance(batch, tuple | list):
            parts = self._without_aside(batch)
            if self._target is not None:
                selection = _selected(batch, self._target, "target")
                rest = [k for k in parts if not (type(self._target) is int and k == self._target % len(batch))]
                return [batch[k] for k in rest], selection
            parts = [batch[k] for k in parts]
            if len(parts) >= 2:
                return parts[:-1], parts[-1]
            return parts, None
        return [batch], None if self._target is None else _selected(batch, self._target, "target")

    def _targeted_by_name(self, batch: Any, named: dict[Any, Any]) -> tuple[Any, Any]:
        name = self._target if isinstance(self._target, str) else None
        if self._target is None:
            name = next((name for name in TARGETS if name in named), None)
            target = None if name is None else named[name]
        else:
            target = _selected(batch, self._target, "target")
        return {each: part for each, part in named.items() if each != name and each not in self._aside}, target

    def _without_aside(self, batch: Sequence[Any]) -> list[int]:
        """The positions of inputs and target; a part by which samples are grouped may be one of these, too."""
        count, least = len(batch), (self._positions or 1) + 1
        if count not in self._inputs_by_count:
            remaining = list(range(count))
            for k in reversed(range(count)):
                if len(remaining) > least and {k, k - count} & self._aside:
                    remaining.remove(k)
            self._inputs_by_count[count] = remaining
        return self._inputs_by_count[count]

    def _arguments(self, batch: Any, rest: Any) -> Arguments:
        if self._inputs is not None:
            return self._model_arguments(batch)
        if isinstance(rest, dict):
            return self._by_name(batch, rest)
        if len(rest) == 1:
            only = rest[0]
            if isinstance(only, Mapping):
                return (), {str(key): value for key, value in only.items()}
            if isinstance(only, tuple | list) and self._positions == len(only) > 1:
                return tuple(only), {}
            return (only,), {}
        if self._positions is not None and len(rest) != self._positions:
            got = structure(batch)
            expected = f"{self._positions} inputs and a target"
            raise ConfigError(describe("batch", got, expected, _SAY))
        return tuple(rest), {}

    def _by_name(self, batch: Any, rest: dict[Any, Any]) -> Arguments:
        inputs_by_name = {str(key): value for key, value in rest.items() if self._names is None or key in self._names}
        tensors = [value for value in rest.values() if isinstance(value, Tensor)]
        if len(tensors) == 1 and not self._needed <= inputs_by_name.keys():
            return (tensors[0],), {}
        if inputs_by_name:
            return (), inputs_by_name
        raise ConfigError(describe("batch", structure(batch), "names that the model takes, or one tensor", _SAY))

    def _model_arguments(self, batch: Any) -> Arguments:
        if callable(self._inputs):
            return _as_arguments(self._inputs(batch))
        if isinstance(self._inputs, str | int):
            return (_selected(batch, self._inputs, "inputs"),), {}
        assert self._inputs is not None
        parts = [(each, _selected(batch, each, "inputs")) for each in self._inputs]
        keywords = {each: part for each, part in parts if isinstance(each, str)}
        return tuple(part for each, part in parts if not isinstance(each, str)), keywords


def _raw(samples: Any) -> Any:
    """Raw samples as they are.

    Raises:
        ConfigError: they are not counted, as those of a generator.
    """
    if not isinstance(samples, Sized):
        do = "Return a list, as list(...) makes one"
        raise ConfigError(describe("preds", type(samples).__name__, "a list with one entry a sample", do))
    return samples


def parse_shown(shown: Shown) -> dict[str, Selector]:
    """What is shown of samples, as selectors by name.

    Raises:
        ConfigError: it is nothing of what it may be.

    Example:
        >>> parse_shown("question,text"), parse_shown(["text"]), parse_shown({"text": 2})
        ({'question': 'question', 'text': 'text'}, {'text': 'text'}, {'text': 2})
    """
    if shown is None:
        return {}
    if isinstance(shown, str):
        shown = [name for name in map(str.strip, shown.split(",")) if name]
    if isinstance(shown, Sequence) and all(isinstance(each, str) for each in shown):
        return {each: each for each in shown}
    if isinstance(shown, Mapping):
        found = {str(name): each for name, each in shown.items()}
        if all(isinstance(each, str | int) or callable(each) for each in found.values()):
            return found
    expected, do = "names, or selectors by name", 'Pass show=["question", "text"]'
    raise ConfigError(describe("show", repr(shown), expected, do))


def as_column(value: Any, what: str) -> Tensor:
    """A target or weights as a tensor.

    Raises:
        ShapeError: they are no numbers in one shape.
    """
    if isinstance(value, Tensor):
        return value
    try:
        return torch.as_tensor(value, device="cpu")
    except (TypeError, ValueError, RuntimeError) as error:
        is_text = isinstance(value, list | tuple) and bool(value) and isinstance(value[0], str)
        do = f"Say with {what}= how the batch becomes {'numbers' if is_text else 'a tensor'}"
        if is_text and what == "target":
            do = "Number the strings: target=lambda batch: [names.index(each) for each in batch['label']]"
        raise ShapeError(describe(what, structure(value), "a tensor, or numbers in one shape", do)) from error


def _copied(values: Any, name: str) -> Any:
    """Values as a tensor or a list of their own."""
    if isinstance(values, Tensor) and values.ndim:
        return values.detach().clone()
    if isinstance(values, np.ndarray) and values.ndim:
        return values.copy()
    if isinstance(values, list | tuple):
        _check_texts(f"slices: {name}", values)
        return list(values)
    do = "Give a part, or a function, with one value a sample"
    raise ConfigError(describe(f"slices: {name}", structure(values), "a tensor, an array or a list", do))


def _check_texts(what: str, values: Sequence[Any]) -> None:
    """Raise where a text is no Unicode: it could not be written at the end."""
    try:
        "".join(each for each in values if isinstance(each, str)).encode()
    except UnicodeEncodeError:
        row, each = next((row, each) for row, each in enumerate(values) if isinstance(each, str) and not _is_text(each))
        do = 'Decode the bytes that it comes from with errors="replace", or write it with ascii()'
        raise ConfigError(
            describe(what, f"{each!a} in row {row} of a batch", "text without lone surrogates", do)
        ) from None


def _is_text(value: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in value)


def _as_arguments(value: Any) -> Arguments:
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return value, {}
    if isinstance(value, Mapping):
        return (), {str(key): part for key, part in value.items()}
    return (value,), {}


def _selected(tree: Any, selector: Selector, what: str) -> Any:
    """The part of a tree that a name, a position or a function finds."""
    if callable(selector):
        return selector(tree)
    try:
        if isinstance(selector, str) and not isinstance(tree, Mapping):
            return getattr(tree, selector)
        return tree[selector]
    except (KeyError, IndexError, AttributeError, TypeError) as error:
        got = f"no {selector!r} in {structure(tree)}"
        raise ConfigError(
            describe(what, got, "a part that is there", "Correct the name, or pass a function")
        ) from error


def only_entry(part: Any) -> Any:
    """What a part of a batch of one sample has for that sample.

    Lists of strings that torch has collated have a list for each entry of theirs.

    Example:
        >>> only_entry(["a"]), only_entry([["a", "b"]]), only_entry([("a",), ("b",)])
        ('a', ['a', 'b'], ['a', 'b'])
    """
    if isinstance(part, list | tuple) and len(part) > 1:
        return [each[0] for each in part] if all(isinstance(each, list | tuple) for each in part) else part
    return part[0]


def _usual(outputs: Any) -> Any:
    if isinstance(outputs, Tensor):
        return outputs
    named = branches(outputs)
    for name in OUTPUTS:
        if named is not None and name in named:
            return named[name]
        if named is None and hasattr(outputs, name):
            return getattr(outputs, name)
    parts = list(named.values()) if named is not None else outputs
    if isinstance(parts, list | tuple) and len(parts) == 1 and isinstance(parts[0], Tensor):
        return parts[0]
    expected = f"a tensor, or a part named {', '.join(OUTPUTS)}"
    raise ConfigError(describe("outputs of the model", structure(outputs), expected, "Say which with preds="))


def _signature(model: Callable[..., Any]) -> tuple[int | None, set[str], set[str] | None]:
    """How many positions a model must be given, their names, and all names that it takes; None where it is open."""
    try:
        parameters: Iterable[inspect.Parameter] = inspect.signature(
            getattr(model, "forward", model)
        ).parameters.values()
    except (TypeError, ValueError):
        return None, set(), None
    parameters = list(parameters)
    kinds = {each.kind for each in parameters}
    if inspect.Parameter.VAR_POSITIONAL in kinds and inspect.Parameter.VAR_KEYWORD in kinds:
        return None, set(), None
    needed = [each for each in parameters if each.default is each.empty and each.kind in _POSITIONAL]
    names = {each.name for each in parameters if each.kind not in _UNNAMED}
    open_ended = inspect.Parameter.VAR_POSITIONAL in kinds
    open_names = inspect.Parameter.VAR_KEYWORD in kinds
    return None if open_ended else len(needed), {each.name for each in needed}, None if open_names else names


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_UNNAMED = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
)
