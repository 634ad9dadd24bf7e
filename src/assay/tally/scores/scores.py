"""Scores and the labels they belong to: kept while they are few, in a histogram when they are many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import torch
from torch import Tensor

from assay.devices.policies import policy
from assay.errors import ConfigError, describe
from assay.native import bins as native
from assay.native import rankings as native_rankings
from assay.native.library import takes
from assay.tally.base import (
    Batch,
    BatchLayout,
    CellStates,
    InvalidValues,
    PreparedAdd,
    Rule,
    State,
    Tally,
    TensorLayout,
    merge_into,
)
from assay.tally.conservation import HostCount, Laws, at_most, equal, not_negative
from assay.tally.scores import curves
from assay.tally.scores.curves import Array, Ranking, of_samples, sort_samples
from assay.tally.scores.labelled_scores import KINDS, ScoreRows, ScoreSpec
from assay.tally.scores.score_bins import ScoreBins
from assay.tally.scores.score_cells import ScoreCells, ScoreKeeping
from assay.tally.scores.score_histogram import ScoreHistogram
from assay.tally.stores.sample_store import SampleStore, canonical
from assay.tally.sums.fingerprints import Fingerprint, FingerprintSize, of_places, of_table
from assay.tally.sums.integer_weights import integer_weights
from assay.triton_kernels import scores as triton_scores
from assay.triton_kernels.launch import takes as triton_takes

_COUNTS = {"count": 1, "invalid": len(KINDS)}
"""The fields that all states have, and their sizes."""

_MOST_OF_PAIRS = 1 << 26
"""Twice the pairs of fewer samples are below 2 ** 53."""

TABLES_CHUNK = 32
"""How many times as many scores of several groups are counted at once: all tables are gone through for each chunk."""

_MOVED = 1 << 17
"""Scores that are moved from the store to the histogram in one go."""


@dataclass(frozen=True)
class ScoreTally(Tally):
    """Every score with its label, or how many scores of each label fell into each bin.

    A *group* is what is ranked against each other: all scores (binary), those of one class against the rest, or those
    of one label. Multiclass logits are ranked by their log-odds (see `log_odds`). While there are at most `keep`
    scores, all are kept and the reading is exact. When there are more, all of them are in a histogram; only the number
    of scores decides, not how they came. `keep=None` always keeps them.

    State: `count` (rows), `invalid` (what should not be there, of four kinds), `samples` (unless `keep` is 0: 5 bytes
    per binary float32 score), and `histogram`, int64 of shape `(groups, 2, bins)`, with `unclear`, how many scores may
    share a bin with others that are not equal to them (see `ScoreBins.place`). Size: 16.7 MB at most, as the bins are
    the fewer the more groups there are: a million for one, half of that for two, and so on.

    Weighted scores are always kept: a bin would need an exact sum. Those of one batch whose value is computed alone are
    kept as well: with `keep=0` they are then read from the bins that they fall into.
    """

    data: ScoreSpec
    keep: int | None = 1 << 20
    weighted: bool = False

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 0:
            raise ConfigError(describe("exact_up_to", self.keep, "0 or more scores", "Give 0 to keep no scores at all"))

    @cached_property
    def _histogram(self) -> ScoreHistogram:
        return ScoreHistogram(self.data)

    @property
    def bins(self) -> ScoreBins:
        return self._histogram.bins

    @property
    def _keeps(self) -> bool:
        return self.keep != 0 or self.weighted

    @property
    def fields(self) -> Mapping[str, Rule]:
        always: dict[str, Rule] = {"count": "sum", "invalid": "sum"}
        if self._always_kept:
            return always | {"samples": "samples"}
        if not self._keeps:
            return always | {"histogram": "sum", "unclear": "sum"}
        return always | {"samples": "samples", "histogram": "late", "unclear": "late"}

    @property
    def _always_kept(self) -> bool:
        return self.weighted or self.keep is None

    @property
    def compiled_chunk_scale(self) -> int:
        return 1 if self.data.groups == 1 else TABLES_CHUNK

    def check(self, layout: BatchLayout) -> None:
        self.data.check(layout)

    def zero(self, device: torch.device) -> State:
        state: State = {name: torch.zeros(size, dtype=torch.int64, device=device) for name, size in _COUNTS.items()}
        if self._keeps:
            state["samples"] = self._store()
        else:
            self._histogram.open(state, device)
        return state

    def zero_of_batch(self, device: torch.device) -> State:
        if self._keeps:
            return self.zero(device)
        counts = {name: torch.zeros(size, dtype=torch.int64, device=device) for name, size in _COUNTS.items()}
        return {**counts, "samples": self._store()}

    def absorb(self, state: State, other: State) -> None:
        merge_into(self, state, other)
        if self._keeps:
            return
        self._pour(other["samples"], state)

    @property
    def _class_dtype(self) -> torch.dtype:
        return torch.int8 if self.data.labels.num_classes <= 127 else torch.int32

    def _store(self) -> SampleStore:
        labels = self.data.groups if self.data.labels.num_labels else 1
        scores, target = (torch.float32, (self.data.groups,)), (self._class_dtype, (labels,))
        columns = {"scores": TensorLayout(*scores), "target": TensorLayout(*target)}
        if self.weighted:
            columns["weights"] = TensorLayout(torch.float32, (labels,))
        return SampleStore(columns)

    def add(self, state: State, batch: Batch) -> None:
        if self.data.is_simple(batch) and self._keeps_more(state, batch.preds.numel()):
            state["count"] += batch.preds.numel()
            self._copy(state, batch.preds.contiguous(), batch.needed_target.contiguous())
            return
        rows = self.data.ranked_rows(batch)
        state["count"] += len(rows.scores)
        if batch.triton and self._add_in_triton(state, rows):
            return
        compiled = batch.compiled and takes(rows.scores)
        self.data.add_invalid(state["invalid"], rows, compiled)
        if self._keeps_more(state, len(rows.scores)):
            state["samples"].append(**self._columns(rows))
            return
        self._close(state)
        if compiled:
            self._histogram.count_places(state, rows.scores, rows.place)
        else:
            self._histogram.count(state, rows.scores, self.data.known(rows), compiled)

    def _columns(self, rows: ScoreRows) -> dict[str, Tensor]:
        """Rows as the store has them."""
        columns = {"scores": rows.scores, "target": self.data.known(rows).to(self._class_dtype)}
        return columns if rows.weights is None else columns | {"weights": rows.weights}

    @property
    def fingerprint_size(self) -> FingerprintSize | None:
        return None if self._always_kept else FingerprintSize()

    def fingerprint(self, batch: Batch) -> Fingerprint:
        rows = self.data.ranked_rows(batch)
        places, counted = self._histogram.places(rows.scores, self.data.known(rows))
        return Fingerprint(of_places(places, counted), places.new_zeros(0))

    def fingerprint_of(self, state: State) -> Fingerprint:
        found = torch.zeros((), dtype=torch.int64, device="cpu")
        if "histogram" in state:
            found = found + of_table(state["histogram"])
        for scores, known in _parts_of(state["samples"], self.data.groups) if "samples" in state else ():
            found = found + of_places(*self._histogram.places(scores, known))
        return Fingerprint(found, found.new_zeros(0))

    def cell_states(self) -> CellStates:
        limit = None if self._always_kept else (self.keep or 0) // self.data.groups
        return ScoreCells(self._histogram, ScoreKeeping(self._store, limit, self._keeps), self._columns)

    def prepare(self, state: State, batch: Batch) -> PreparedAdd | None:
        if not (self._keeps and self.data.is_simple(batch)) or batch.weights is not None:
            return None
        rows, count = batch.preds.numel(), state["count"].numpy()

        def add(preds: Tensor, target: Tensor | None, weights: Tensor | None) -> None:
            if target is None or not self._keeps_more(state, rows):
                self.add(state, Batch(preds.detach(), target, compiled=True))
                return
            count[0] += rows
            self._copy(state, preds, target)

        return add

    def _copy(self, state: State, scores: Tensor, target: Tensor) -> None:
        """Keep contiguous scores with their classes, in one pass over them."""
        first, first_target = scores.data_ptr(), target.data_ptr()

        def write(columns: Mapping[str, Tensor], row: int, start: int, count: int) -> None:
            into = columns["target"].data_ptr() + row, columns["scores"].data_ptr() + 4 * row
            self.data.copy_simple(state["invalid"], first + 4 * start, first_target + 8 * start, count, *into)

        state["samples"].append_by(scores.numel(), write)

    def _add_in_triton(self, state: State, rows: ScoreRows) -> bool:
        """Count rows in one launch; false where the kernel does not take them, and then nothing was counted."""
        if rows.weights is not None or not triton_takes(rows.scores, dtypes=(torch.float32,)):
            return False
        labels = self.data.labels
        kind = triton_scores.ScoreKind(labels.num_classes, labels.multiclass, self.data.logits)
        given = (kind, rows.scores, rows.place, state["invalid"])
        if not self._keeps_more(state, len(rows.scores)):
            self._close(state)
            counts = (state["histogram"], state["unclear"])
            return triton_scores.count_scores(*given, *counts, self.bins.description)
        store = state["samples"]
        known = torch.empty_like(rows.place, dtype=store.columns["target"].dtype)
        if not triton_scores.known_classes(*given, known):
            return False
        store.append(scores=rows.scores, target=known)
        return True

    def _keeps_more(self, state: State, rows: int) -> bool:
        """Whether so many rows are kept with those that were before them."""
        return "samples" in state and (not self._keeps or self._fits(state["samples"].rows + rows))

    def _close(self, state: State) -> None:
        """Move what was kept into the histogram, as there are too many scores now."""
        self._histogram.open(state, state["count"].device)
        if "samples" in state and state["samples"].rows:
            self._pour(state["samples"], state)
            state["samples"] = state["samples"].emptied()

    def _fits(self, rows: int) -> bool:
        return self._always_kept or rows * self.data.groups <= (self.keep or 0)

    def _pour(self, store: SampleStore, state: State) -> None:
        """Add everything that a store holds to the histogram."""
        device = state["count"].device
        self._histogram.open(state, device)
        for scores, known in _parts_of(store, self.data.groups):
            moved = scores.to(device), known.to(device)
            self._histogram.count(state, *moved, policy(device).compiled.value)

    def canonicalize(self, state: State, rows: int) -> State:
        done = self.settle(state, rows)
        return done | {"samples": canonical(done["samples"])} if self._keeps else done

    def settle(self, state: State, rows: int) -> State:
        if not self._keeps or self._fits(int(state["count"])):
            return state
        done = dict(state)
        if done["samples"].rows:
            for name in ("histogram", "unclear"):
                if name in done:
                    done[name] = done[name].clone()
            self._pour(done["samples"], done)
        done["samples"] = self._store()
        return done

    def invalid_values(self, state: State) -> Sequence[InvalidValues]:
        return self.data.invalid_values(state["invalid"])

    def broken_laws(self, state: State, given: HostCount) -> Laws:
        yield from not_negative(state, "count", "invalid", "histogram", "unclear")
        rows, kept = int(state["count"]), state["samples"].rows if "samples" in state else 0
        yield from equal("the rows that were counted are those that were given", self.data.rows_of(given), rows)
        if "histogram" not in state:
            yield from equal("every row is kept", rows, kept)
            return
        of_groups = state["histogram"].numpy().sum((1, 2)).tolist()
        unclear = int(state["unclear"].max())
        yield from at_most("scores that are no float32 are no more than the scores", rows * self.data.groups, unclear)
        if not kept:
            yield from self.data.counted_laws(rows, of_groups, state["invalid"].tolist())
        yield from at_most(
            "scores in bins and those that are kept are no more than the rows", rows - kept, max(of_groups)
        )

    def compute(self, state: State) -> tuple[Ranking, ...]:
        """One ranking for each group."""
        if "histogram" in state:
            plain, float32 = (not count for count in state["unclear"].tolist())
            return tuple(self._of_bins(counts, plain, float32) for counts in state["histogram"].numpy())
        store = state["samples"]
        if not self._keeps:
            return self._of_few_bins(store.column("scores"), store.column("target"))
        columns = {name: store.column(name) for name in store.columns}
        if not self.weighted and _is_ranked_in_c(columns["scores"], columns["target"]):
            return self._ranked_in_c(columns)
        values = {name: column.numpy() for name, column in columns.items()}
        if self.weighted:  # of one unit, as rankings of several labels are added up
            values["weights"] = integer_weights(np.where(values["target"] >= 0, values["weights"], 0))[0]
            return tuple(self._of_samples(values, group) for group in range(self.data.groups))
        return self._with_samples((self._of_samples(values, group) for group in range(self.data.groups)), columns)

    def counts_of(self, batch: Batch) -> tuple[Ranking, ...] | None:
        columns = self._valid_columns(batch) if self._keeps else None
        if columns is None or not self._fits(columns["scores"].shape[0]):
            return None
        return self._ranked_in_c(columns) if _is_ranked_in_c(columns["scores"], columns["target"]) else None

    def _valid_columns(self, batch: Batch) -> dict[str, Tensor] | None:
        """The rows of a batch as the store has them; None where one is invalid, and of batches with weights."""
        if (known := self.data.valid_classes(batch)) is not None:
            return {"scores": batch.preds.view(-1, 1), "target": known.view(-1, 1)}
        rows = self.data.ranked_rows(batch)
        if rows.weights is not None or not takes(rows.scores):
            return None
        self.data.add_invalid(invalid := torch.zeros(len(KINDS), dtype=torch.int64, device="cpu"), rows, compiled=True)
        return None if invalid.numpy().any() else self._columns(rows)

    def _ranked_in_c(self, columns: Mapping[str, Tensor]) -> tuple[Ranking, ...]:
        ranked = (self._rank(columns["scores"], columns["target"], group) for group in range(self.data.groups))
        return self._with_samples(ranked, columns)

    def _with_samples(self, rankings: Iterable[Ranking], columns: Mapping[str, Tensor]) -> tuple[Ranking, ...]:
        def samples(group: int) -> tuple[Array, Array]:
            target = columns["target"].numpy()[:, group if self.data.labels.num_labels else 0]
            positive = target == (group if self.data.labels.multiclass else 1)
            return columns["scores"].numpy()[:, group], positive.astype(np.int8) - (target < 0)

        return tuple(each.with_samples(partial(samples, group)) for group, each in enumerate(rankings))

    def _of_bins(self, counts: Array, plain: bool, float32: bool) -> Ranking:
        filled = np.flatnonzero(counts.any(0))[::-1]
        return self._ranking(filled, list(counts[:, filled]), plain, float32)

    def _of_few_bins(self, scores: Tensor, target: Tensor) -> tuple[Ranking, ...]:
        """The rankings of the bins of these scores, which are few beside all bins."""
        place, unclear = native.place_scores(scores, self.bins.layout) if takes(scores) else self.bins.place(scores)
        plain, float32 = (not count for count in unclear.tolist())
        if _is_ranked_in_c(scores, target):
            bins = place.float()  # of which there are fewer than 2 ** 24
            positives, groups = self.data.positives, range(self.data.groups)
            ranked = [native_rankings.rank_scores(bins[:, k], *positives(target, k)) for k in groups]
            columns = enumerate(place.numpy().T)
            return tuple(self._ranking(each[ranked[k].rows], ranked[k][2:0:-1], plain, float32) for k, each in columns)
        labels = target.numpy()
        rankings = []
        for group, bins in enumerate(place.numpy().T):
            classes = labels[:, group if self.data.labels.num_labels else 0]
            known = classes >= 0
            filled, where = np.unique(bins[known], return_inverse=True)
            positive = classes[known] == (group if self.data.labels.multiclass else 1)
            counts = np.bincount(where + len(filled) * positive, minlength=2 * len(filled)).reshape(2, -1)
            rankings.append(self._ranking(filled[::-1], list(counts[:, ::-1]), plain, float32))
        return tuple(rankings)

    def _ranking(self, bins: Array, counts: Sequence[Array], plain: bool, float32: bool) -> Ranking:
        """The ranking of bins in falling order, with their negatives and positives."""
        single = self.bins.single(bins, plain, float32)
        return Ranking(lambda: self.bins.thresholds(bins, single), counts[1], counts[0], single)

    def _rank(self, scores: Tensor, target: Tensor, group: int) -> Ranking:
        """The ranking of a group in compiled code."""
        levels = native_rankings.rank_scores(scores[:, group], *self.data.positives(target, group))

        def thresholds() -> Array:
            return scores[:, group].numpy()[levels.rows].astype(np.float64) + 0.0  # the zero of both signs is one score

        twice_below = partial(native_rankings.twice_below, levels.order, scores.shape[0])
        counts = levels.positives, levels.negatives, np.ones(levels.rows.shape, bool)
        cumulated = levels.hits, levels.alarms
        return Ranking(thresholds, *counts, twice_below=twice_below, pairs=levels.pairs, cumulated=cumulated)

    def _of_samples(self, values: Mapping[str, Array], group: int) -> Ranking:
        rows, positive = self._ranked(values, group)
        column = group if self.data.labels.num_labels else 0
        weights = values["weights"][rows, column] if self.weighted else None
        return of_samples(values["scores"][rows, group], positive, weights)

    def _ranked(self, values: Mapping[str, Array], group: int) -> tuple[Array, Array]:
        """The rows that are ranked in a group, and which of them are positive."""
        target = values["target"][:, group if self.data.labels.num_labels else 0]
        rows = np.flatnonzero(target >= 0)
        return rows, target[rows] == (group if self.data.labels.multiclass else 1)

    def area_sums(self, state: State, codes: Array, groups: int) -> Array | None:
        if not self._keeps_plain_scores(state) or not takes(scores := state["samples"].column("scores")):
            return None
        known, within = state["samples"].column("target"), torch.from_numpy(codes.astype(np.int32))
        columns = (self.data.positives(known, group) for group in range(self.data.groups))
        sums = native_rankings.area_sums
        return np.array([sums(scores[:, k], of, within, positive, groups) for k, (of, positive) in enumerate(columns)])

    def pairs_of_draws(self, state: State, codes: Array, draws: Array) -> Array | None:
        most = int((draws @ np.bincount(codes, minlength=draws.shape[1])).max(initial=0))
        if not self._keeps_plain_scores(state) or most >= _MOST_OF_PAIRS:
            return None
        scores, known = (state["samples"].column(name) for name in ("scores", "target"))
        if not takes(scores):
            compute = self.compute_repeated(state)
            each = [map(curves.pairs_of, compute(times[codes])) for times in draws] if compute else []
            return np.array([list(of_draw) for of_draw in each], np.float64).transpose(1, 2, 0)
        within, pairs = torch.from_numpy(codes.astype(np.int32)), native_rankings.pairs_of_draws
        columns = (self.data.positives(known, group) for group in range(self.data.groups))
        return np.array([pairs(scores[:, k], of, within, positive, draws) for k, (of, positive) in enumerate(columns)])

    def _keeps_plain_scores(self, state: State) -> bool:
        """Whether a state holds every score, without weights."""
        return "samples" in state and "histogram" not in state and not self.weighted

    def compute_repeated(self, state: State) -> Callable[[Array], tuple[Ranking, ...]] | None:
        if not self._keeps_plain_scores(state):
            return None
        store = state["samples"]
        values = {name: store.column(name).numpy() for name in store.columns}
        ranked = [self._ranked(values, group) for group in range(self.data.groups)]
        groups = [(rows, sort_samples(values["scores"][rows, k], each)) for k, (rows, each) in enumerate(ranked)]
        return lambda times: tuple(each.ranking(times[rows], drop_empty=True) for rows, each in groups)


def _is_ranked_in_c(scores: Tensor, target: Tensor) -> bool:
    return takes(scores) and target.dtype == torch.int8 and scores.shape[0] < native_rankings.MOST_ORDERED


def _parts_of(store: SampleStore, groups: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The scores that are kept with their known classes, some of them at a time, where they are kept."""
    size = max(1, _MOVED // groups)
    for block in store.blocks():
        for start in range(0, len(block["scores"]), size):
            rows = slice(start, start + size)
            yield block["scores"][rows], block["target"][rows].to(torch.int64)
