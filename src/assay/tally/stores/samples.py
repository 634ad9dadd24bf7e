"""Every sample as the state of a tally: for what cannot be computed from counts, such as ranks and quantiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from assay.errors import DtypeError, ShapeError, describe
from assay.tally.base import (
    BAD_WEIGHTS,
    Batch,
    BatchLayout,
    InvalidValues,
    PreparedAdd,
    Rule,
    State,
    Tally,
    TensorLayout,
    bad_weights,
    shown,
)
from assay.tally.conservation import HostCount, Laws, equal
from assay.tally.layout_checks import check_as_preds, check_weights
from assay.tally.stores.sample_store import ANY, DEVICE_BUDGET, FLOATS, HOST_BUDGET, WHOLE, SampleStore, canonical


@dataclass(frozen=True, eq=False)
class SampleArrays:
    """Samples on the CPU: for each argument an array of shape `(outputs, samples)`, floats or int64."""

    values: Mapping[str, np.ndarray]
    weights: np.ndarray | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        return self.values[name]


@dataclass(frozen=True)
class SampleTally(Tally):
    """Every sample of the arguments, and its weight.

    State: one `SampleStore`. Size: the bytes of the data, in its own dtypes, on the device up to `device_budget`, then
    in host memory up to `host_budget`, then on disk. Reading brings all of it into host memory.

    With `num_outputs`, arguments are `(N, num_outputs)`; without, each element of `(N, ...)` is a sample of one output.
    """

    arguments: tuple[Literal["preds", "target"], ...] = ("preds", "target")
    num_outputs: int | None = None
    weighted: bool = False
    device_budget: int = field(default=DEVICE_BUDGET, kw_only=True)
    host_budget: int = field(default=HOST_BUDGET, kw_only=True)
    fields: ClassVar[Mapping[str, Rule]] = {"samples": "samples"}

    @property
    def uses_target(self) -> bool:
        return "target" in self.arguments

    @property
    def _tail(self) -> tuple[int, ...]:
        return () if self.num_outputs is None else (self.num_outputs,)

    def check(self, layout: BatchLayout) -> None:
        preds, weights = layout.preds, layout.weights
        columns = {"preds": preds, "target": layout.target} if "target" in self.arguments else {"preds": preds}
        for name, argument in columns.items():
            _check_dtype(name, check_as_preds(name, argument, preds))
        if self.num_outputs is not None and (preds.tail or (1,)) != (self.num_outputs,):
            expected = f"shape (N, {self.num_outputs})"
            raise ShapeError(describe("preds", f"shape {shown(preds.tail)}", expected, "Check num_outputs"))
        if weights is not None:
            _check_dtype("weights", weights)
            check_weights(weights, preds.tail)

    def zero(self, device: torch.device) -> State:
        names = (*self.arguments, "weights") if self.weighted else self.arguments
        columns = {name: TensorLayout(ANY, self._tail) for name in names}
        return {"samples": SampleStore(columns, device_budget=self.device_budget, host_budget=self.host_budget)}

    def add(self, state: State, batch: Batch) -> None:
        shape, store = batch.preds.shape, state["samples"]

        def arranged(tensor: Tensor) -> Tensor:
            if tensor.shape != shape:  # weights of shape (N,)
                tensor = tensor.view(-1, *(1,) * (len(shape) - 1)).expand(shape)
            return tensor.reshape(-1, *self._tail)

        store.append(**{name: arranged(getattr(batch, name)) for name in store.columns})

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        given = {name: each for name in state["samples"].columns if (each := getattr(batch, name)) is not None}
        if any(each.dtype not in WHOLE + FLOATS or each.shape != batch.preds.shape for each in given.values()):
            return None
        tail, names = self._tail, tuple(given)

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            tensors = {"preds": preds, "target": target, "weights": weights}
            rows = {name: each.detach().reshape(-1, *tail) for name in names if (each := tensors[name]) is not None}
            state["samples"].append(**rows)

        return add

    def canonicalize(self, state: State, rows: int) -> State:
        return {"samples": canonical(state["samples"])}

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        store = state["samples"]
        nan = sum(map(store.count_nan, self.arguments))
        problems = [InvalidValues("values are NaN", nan, fatal=False)] if nan else []
        bad = int(bad_weights(store.column("weights")).sum()) if self.weighted else 0
        return [*problems, InvalidValues(BAD_WEIGHTS, bad)] if bad else problems

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        samples = None if given.preds is None else given.preds // (self.num_outputs or 1)
        yield from equal("every sample is kept", samples, state["samples"].rows)

    def compute(self, state: State) -> SampleArrays:
        """The samples as arrays."""
        store = state["samples"]
        values = {name: _array(store.column(name)) for name in store.columns}
        return SampleArrays({name: values[name] for name in self.arguments}, values.get("weights"))


@dataclass(frozen=True)
class UnorderedSamples(SampleTally):
    """The same for values that are the same bits in any order of the samples, as exact sums of their ranks are."""

    def settle(self, state: State, rows: int) -> State:
        return state

    def counts_of(self, batch: Batch) -> SampleArrays | None:
        if self.weighted:
            return None
        given = {name: getattr(batch, name) for name in self.arguments}
        values: dict[str, np.ndarray] = {name: _array(each.reshape(-1, *self._tail)) for name, each in given.items()}
        has_nan = any(each.dtype.kind == "f" and np.isnan(each).any() for each in values.values())
        return None if has_nan else SampleArrays(values)


def _check_dtype(name: str, column: TensorLayout) -> None:
    if column.dtype not in WHOLE + FLOATS:
        raise DtypeError(describe(name, column.dtype, "real numbers", f"Convert {name}, for example with .float()"))


def _array(values: Tensor) -> np.ndarray:
    """A column as float32, float64 or int64 of shape `(outputs, rows)`."""
    if values.dtype in WHOLE:
        values = values.to(torch.int64)
    elif values.dtype != torch.float64:
        values = values.float()
    outputs = 1 if values.ndim == 1 else values.shape[1]
    return np.ascontiguousarray(values.numpy().reshape(-1, outputs).T)
