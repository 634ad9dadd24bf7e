"""How uncertain values are: samples are randomly assigned to groups, which are counted apart and resampled."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from assay.devices.placement import to_host
from assay.errors import ConfigError, ShapeError, StateError, describe
from assay.meter import Meter
from assay.meter.counting.device_counts import interrupted
from assay.meter.inputs.arguments import Arguments
from assay.meter.resampling.intervals import bootstrap, group_count
from assay.meter.resampling.replicates import ConfidenceInterval, drawn_values
from assay.stats.sampling import groups_of, numbers_of
from assay.wrappers.nested_meters import load_meters, require_meter, save_meters

BUFFER_ROWS = 1 << 13
BUFFER_BYTES = 1 << 24
"""Rows are assigned when so many are held, or so many bytes. A few at a time would be slow, and each time the process
waits for one small copy: the order in which the device puts the rows."""
_STAGE_BYTES = 1 << 14  # of each group, which is given rows by the dozen
_NEXT = "next"


class Bootstrap:
    """Measures with intervals, standard errors and quantiles, in one pass and without keeping samples.

    Each sample is randomly assigned to one of some groups, by a hash of its id, and counted by the meter of that group.
    The sum of the groups is the value. Drawing groups again says how it would spread for other samples: see
    `assay.meter.resampling.intervals.bootstrap`.

    Where `ids` are given, everything has the same bits however the samples were split over batches and processes. Else
    a sample is identified by its place in the stream of this process.

    Args:
        meter: says what is measured; it is not changed.
        groups: how many groups; as many as 64 MiB of counts allow, at most 128, by default.
        seed: another assignment and other draws for each.

    Raises:
        ConfigError: fewer than 16 groups, or counts that are too large for them.
        StateError: no meter.

    Example:
        >>> from assay.metrics import F1Score
        >>> estimate = Bootstrap(Meter(f1=F1Score()))
        >>> numbers = torch.arange(2000)
        >>> estimate.update((numbers % 7 > 3).long(), (numbers % 5 > 2).long(), ids=numbers)
        >>> found = estimate.intervals()["f1"]
        >>> round(found.lower, 2), round(float(estimate.compute()["f1"]), 2), round(found.upper, 2)
        (0.39, 0.41, 0.45)

    Source: N. Chamandy et al., Estimating uncertainty for massive data streams, Google 2012.
    """

    def __init__(self, meter: Meter, groups: int | None = None, seed: int = 0) -> None:
        meter = require_meter("meter", meter)
        count = group_count(meter) if groups is None else groups
        if isinstance(count, bool) or not isinstance(count, int) or not 16 <= count <= 4096:
            got = repr(groups) if groups is not None else f"counts of {meter!r}, which are too large for 16 groups"
            do = "Say how many groups, or measure those metrics without a bootstrap"
            raise ConfigError(describe("groups", got, "a number from 16 to 4096", do))
        self._like, self._seed = meter.fresh(), int(seed)
        group = meter.fresh(stage_bytes=_STAGE_BYTES)
        self._groups = [group.fresh() for _ in range(count)]
        self.reset()

    def reset(self) -> None:
        """Forget everything that was counted."""
        self._buffer: list[Arguments] = []
        self._codes: list[NDArray[np.int64]] = []
        self._layout: tuple[Any, ...] = ()
        self._next = 0
        self._broken = ""
        for group in self._groups:
            group.reset()

    @property
    def rows(self) -> int:
        """How many samples were given."""
        return sum(map(len, self._codes)) + sum(group.rows for group in self._groups)

    def update(
        self,
        preds: Any,
        target: Any = None,
        *,
        weights: Tensor | None = None,
        ids: Tensor | Sequence[Any] | None = None,
        **columns: Tensor | None,
    ) -> None:
        """Count a batch.

        Args:
            preds: as for `Meter.update`.
            target: likewise.
            weights: likewise.
            ids: the id of each sample, on the CPU: integers or strings, `(N,)`. The process synchronizes for ids on a
                device.
            **columns: as for `Meter.update`.

        Raises:
            ShapeError: also where there are not as many ids as samples.
            DtypeError, DeviceError, ConfigError: as `Meter.update`. Nothing has then been counted.
        """
        self._refuse_if_broken()
        batch = self._like.checked(self._like.arguments(preds, target, weights, columns))
        count = len(batch.preds)
        numbers = np.arange(self._next, self._next + count) if ids is None else _numbers(ids)
        if len(numbers) != count:
            do = "Give one id for each sample"
            raise ShapeError(describe("ids", f"{len(numbers)} ids", f"as many as preds has rows, {count}", do))
        tensors = (None if each is None else (each.dtype, each.device, each.shape[1:]) for each in batch.tensors)
        layout = (*tensors, *batch.names, *(each.layout for each in batch.ragged.values()))
        if layout != self._layout:
            self._assign()
            self._layout = layout
        self._buffer.append(batch.map(lambda tensor: tensor.detach().clone()))
        self._codes.append(groups_of(numbers, self._seed, len(self._groups)))
        self._next += count
        if sum(map(len, self._codes)) >= BUFFER_ROWS or sum(batch.nbytes for batch in self._buffer) >= BUFFER_BYTES:
            self._assign()

    def _assign(self) -> None:
        """Give the rows that are held to the meters of their groups."""
        self._refuse_if_broken()
        if not self._buffer:
            return
        batch = Arguments.cat(self._buffer)
        codes = np.concatenate(self._codes)
        self._buffer, self._codes = [], []
        if not len(codes):
            return
        try:
            for code, rows in batch.by_code(codes):
                self._groups[code].count(rows)
        except BaseException as error:
            self._broken = type(error).__name__
            raise

    def _refuse_if_broken(self) -> None:
        if self._broken:
            raise interrupted("Bootstrap", self._broken)

    @property
    def groups(self) -> tuple[Meter, ...]:
        """The meters of the groups."""
        self._assign()
        return tuple(self._groups)

    def total(self) -> Meter:
        """A new meter with all samples."""
        return self._like.fresh().merge(*self.groups)

    def compute(self, only: Iterable[str] | None = None) -> dict[str, Any]:
        """The values, as `Meter.compute` gives them: those of all samples, not means of what is drawn."""
        return self.total().compute(only)

    def intervals(self, confidence_level: float = 0.95, n_resamples: int = 400) -> dict[str, ConfidenceInterval]:
        """Confidence intervals of all values that have one; see `assay.meter.resampling.intervals.bootstrap`."""
        return bootstrap(self.groups, confidence_level, n_resamples, self._seed)

    def drawn(self, n_resamples: int = 400) -> dict[str, list[float]]:
        """The values of the replicates themselves, by name; nothing where fewer than ten groups have samples."""
        values = drawn_values(self.groups, n_resamples, self._seed)
        return {name: others for name, (_, *others) in values.items()}

    def standard_errors(self, n_resamples: int = 400) -> dict[str, float]:
        """The standard deviation of the values of the replicates, times `sqrt(G / (G - 1))` for G groups with samples.

        Replicates that are undefined are left out; NaN where fewer than two are left.
        """
        filled = sum(group.rows > 0 for group in self.groups)
        draws = {name: _defined(values) for name, values in self.drawn(n_resamples).items()}
        return {
            name: statistics.stdev(known) * math.sqrt(filled / (filled - 1)) if len(known) > 1 else math.nan
            for name, known in draws.items()
        }

    def quantiles(self, q: float | Sequence[float], n_resamples: int = 400) -> dict[str, list[float]]:
        """Quantiles of the values of the replicates, interpolated linearly; undefined replicates are left out.

        Raises:
            ConfigError: a quantile outside of 0 to 1.
        """
        wanted = np.atleast_1d(np.asarray(q, np.float64))
        if wanted.ndim > 1 or not ((wanted >= 0) & (wanted <= 1)).all():
            raise ConfigError(describe("q", repr(q), "numbers from 0 to 1", "Pass 0.5 for the median"))
        draws = {name: _defined(values) for name, values in self.drawn(n_resamples).items()}
        return {name: np.quantile(known or [math.nan], wanted).tolist() for name, known in draws.items()}

    def merge(self, *others: Bootstrap) -> Bootstrap:
        """Add what others of equal metrics, groups and seed have counted; they stay as they are.

        Raises:
            StateError: one of them was made otherwise.
        """
        for other in others:
            same = isinstance(other, Bootstrap) and (other._seed, len(other._groups)) == (self._seed, len(self._groups))
            if not same or other._like.metrics != self._like.metrics or other._like.weighted != self._like.weighted:
                do = "Make both with equal metrics, groups and seed"
                raise StateError(describe("merge", repr(other), f"one as {self!r}", do))
        parts = [other.groups for other in others]
        for k, group in enumerate(self.groups):
            group.merge(*(part[k] for part in parts))
        self._next += sum(other._next for other in others)
        return self

    def __add__(self, other: Bootstrap) -> Bootstrap:
        """A new one with what both have counted."""
        if not isinstance(other, Bootstrap):
            return NotImplemented
        return self.fresh().merge(self, other)

    def fresh(self) -> Bootstrap:
        """The same with nothing counted."""
        return Bootstrap(self._like, len(self._groups), self._seed)

    def sync(self, group: dist.ProcessGroup | None = None) -> Bootstrap:
        """A new one with what all processes have counted: one exchange for each group. See `Meter.sync`."""
        total = self.fresh()
        for own, everywhere in zip(self.groups, total._groups, strict=True):
            everywhere.merge(own.sync(group))
        return total

    def state_dict(self) -> dict[str, Tensor]:
        """What was counted, as tensors on the CPU."""
        counters = {_NEXT: torch.tensor([self._next, self._seed], device="cpu")}
        return counters | save_meters({str(k): meter for k, meter in enumerate(self.groups)})

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Replace what was counted by what `state_dict` gave.

        Raises:
            StateError: other metrics, another number of groups, another seed, or not whole; it is then as it was.
        """
        rest = {name: tensor for name, tensor in state.items() if name != _NEXT}
        known = {str(k): meter for k, meter in enumerate(self._groups)}
        meters = load_meters(rest, lambda name: known[name].fresh() if name in known else None)
        counters = state.get(_NEXT)
        seed = None if counters is None or counters.shape != (2,) else int(counters[1])
        if meters.keys() != known.keys() or counters is None or seed != self._seed:
            got = f"{len(meters)} groups of seed {seed}"
            do = "Make it with the same groups and seed"
            raise StateError(describe("state_dict", got, f"{len(known)} of seed {self._seed}", do))
        self.reset()
        self._groups, self._next = [meters[name] for name in known], int(counters[0])

    def __getstate__(self) -> dict[str, Any]:
        self._assign()
        return self.__dict__.copy()

    def __repr__(self) -> str:
        return f"Bootstrap({self._like!r}, groups={len(self._groups)}, seed={self._seed}; {self.rows} samples)"


def _numbers(ids: Tensor | Sequence[Any]) -> NDArray[np.int64]:
    if isinstance(ids, Tensor | np.ndarray):
        values = to_host(ids).numpy() if isinstance(ids, Tensor) else ids
        if values.ndim != 1:
            raise ShapeError(describe("ids", f"{values.ndim} dimensions", "one", "Give one id for each sample"))
        return numbers_of(values.tolist())
    return numbers_of(ids)


def _defined(values: Sequence[float]) -> list[float]:
    return [value for value in values if not math.isnan(value)]
