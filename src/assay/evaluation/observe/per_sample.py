"""What every sample contributed to the metrics, kept on the CPU, so that reports can be compared sample by sample.

Of raw samples, such as strings and boxes, and of masks, only the worst of each metric are kept, shortened.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from assay.devices.placement import to_host
from assay.evaluation.data.pictures import Marks, are_masks, box_marks, class_name, mask_marks
from assay.evaluation.observe.observers import Array, SampleRows, Tensors, as_bytes, from_bytes, metric_columns
from assay.evaluation.observe.sample_segments import SEGMENT_ROWS, Fetch, SampleSegments, Segment
from assay.metrics.base import Metric
from assay.metrics.per_sample import predictions
from assay.report import RawSample, Samples
from assay.report.per_sample.packed_array import PackedArray, narrowest
from assay.report.per_sample.sample_files import SampleFile, widened, write_columns
from assay.report.per_sample.samples import MOST_SAMPLES, Column
from assay.report.worst import LIMIT, order_of_choice, severity, worst_rows

_COLUMN, _INDEX, _DECISION, _TARGET, _PRINT, _IDS = "column ", "index", "decision", "target", "print", "ids"
_CLUSTER = "cluster"
_SHARED = "Per-sample values were not kept, as samples share ids: pass unique ids= to keep them."
_BY_INDEX = "Samples are called by their indices in the data set, as some have the same id."
_CHARACTERS = 200  # of a string that is shown

Candidate: TypeAlias = "tuple[float, Any, int | None, str, str, Marks | None]"
"""A bad sample: its severity, its id and its index as far as there are any, prediction, target, and what is drawn."""


@dataclass(frozen=True)
class PerSampleValues:
    """All samples in the order of their ids.

    Attributes:
        samples: what each contributed; None where none are kept.
        terms: by metric, its numerator and its denominator, as columns of the samples.
        order: where the samples come in what was kept.
        index: where each sample is in the data set; None for a stream.
        marks: what is drawn on the worst images, by the id of the sample.
        notes: what a reader must know.
    """

    samples: Samples | None = None
    terms: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    order: Array | None = None
    index: Array | PackedArray | None = None
    marks: Mapping[str, Marks] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class PerSampleRecorder:
    """Contributions, decisions and targets of all samples so far.

    Args:
        metrics: what the samples contribute to.
        expected: how many samples there are, where that is known.
        most: how many samples are kept.
        in_files: more than `MOST_SAMPLES` are written to temporary files while they are counted.
        cluster: what the clusters of samples are; empty where samples are independent.

    Attributes:
        terms: by metric, its numerator and its denominator, as columns of the samples.
        most: how many samples are kept.
    """

    def __init__(
        self,
        metrics: Mapping[str, Metric],
        expected: int = 0,
        most: int = MOST_SAMPLES,
        in_files: bool = False,
        cluster: str = "",
    ) -> None:
        self._metrics, self._expected, self.most, self._cluster = metrics, expected, most, cluster
        self._in_files = in_files and most > MOST_SAMPLES and not 0 < expected <= MOST_SAMPLES
        self._segments = SampleSegments()
        self._series: dict[str, list[Array]] = {}
        self._ids: list[Any] = []
        self.terms: dict[str, tuple[str, str]] = {}
        self._worst: dict[str, list[Candidate]] = {}
        self._score = ""
        self._rows = 0

    @property
    def full(self) -> bool:
        """Whether there were too many samples, so that none are kept."""
        return max(self._rows, self._expected) > self.most

    @property
    def keeps_all(self) -> bool:
        """Whether it is known that every sample will be kept."""
        return 0 < self._expected <= self.most

    @property
    def idle(self) -> bool:
        """Whether there were too many samples on this process already."""
        return self.full

    def empty(self) -> PerSampleRecorder:
        """One that has kept nothing."""
        return PerSampleRecorder(self._metrics, self._expected, self.most, self._in_files, self._cluster)

    def count(self, rows: SampleRows) -> None:
        """Keep what rows contribute; it is moved to the CPU at once."""
        if not self._room(len(rows)):
            return
        values: dict[str, Tensor] = {}
        decided = None
        for name, metric in self._metrics.items():
            each = rows.terms_of(metric)
            if each is not None:
                values.update(each.terms)
                self.terms[name] = (each.numerator, each.denominator)
                if metric.higher_is_better is not None:
                    counts = host_array(each.terms[each.denominator]) if each.denominator else None
                    severities = severity(host_array(each.terms[each.numerator]), counts, metric.higher_is_better)
                    key = f"{each.numerator} / {each.denominator} {metric.higher_is_better}"
                    self._note_worst(key, rows, metric, severities)
            elif rows.batch.ragged and (scores := metric.sample_scores(rows.batch.ragged)) is not None:
                self._score = self._score or scores[0]
                values[scores[0]] = torch.from_numpy(scores[1])
                self._note_worst(scores[0], rows, metric, severity(scores[1], None, True))
            if decided is None and rows.target is not None:
                decided = predictions(metric, rows.preds, rows.target, **metric_columns(metric, rows.batch))
        tensors = {_COLUMN + name: column for name, column in values.items()}
        if decided is not None and decided.ndim == 1:
            tensors[_DECISION] = decided
        if rows.target is not None and rows.target.ndim == 1:
            tensors[_TARGET] = rows.target
        for name, tensor in tensors.items():
            self._series.setdefault(name, []).append(host_array(tensor))
        if (rows.raw is not None or _TARGET not in tensors) and rows.target_numbers is not None:
            self._series.setdefault(_PRINT, []).append(rows.target_numbers)
        if rows.index is not None:
            self._series.setdefault(_INDEX, []).append(rows.index)
        if rows.clusters is not None:
            self._series.setdefault(_CLUSTER, []).append(rows.clusters)
        self._ids += rows.ids or ()
        self._write_when_large()

    def _note_worst(self, key: str, rows: SampleRows, metric: Metric, severities: Array) -> None:
        """Keep the raw samples and masks that are the worst so far by a metric, and boxes and masks of some others."""
        is_drawn = bool(rows.batch.ragged) if rows.raw is not None else are_masks(rows.preds, rows.target)
        if rows.raw is None and not is_drawn:
            return
        names = rows.index if rows.ids is None else id_array(rows.ids)
        assert names is not None
        self._note_largest(key, rows, metric, severities, names)
        if is_drawn:
            chosen = np.where(severities == -np.inf, -np.inf, -order_of_choice(names))
            self._note_largest(f"{key}, chosen", rows, metric, chosen, names)

    def _note_largest(self, key: str, rows: SampleRows, metric: Metric, severities: Array, names: Array) -> None:
        worst = self._worst.get(key, [])
        least = worst[-1][0] if len(worst) == LIMIT else -np.inf
        candidates: list[Candidate] = []
        for row in worst_rows(np.where(severities < least, -np.inf, severities), names, LIMIT).tolist():
            id_ = None if rows.ids is None else rows.ids[row]
            index = None if rows.index is None else int(rows.index[row])
            candidates.append((float(severities[row]), id_, index, *_shown(rows, row, metric)))
        self._worst[key] = _worst([*worst, *candidates])

    def _room(self, rows: int) -> bool:
        self._rows += rows
        if self.full:
            self._series, self._ids, self.terms, self._worst = {}, [], {}, {}
            self._segments = SampleSegments()
        return not self.full

    def _write_when_large(self) -> None:
        if self._in_files and self._rows - self._segments.rows >= SEGMENT_ROWS:
            self._write()

    def _write(self) -> None:
        """Write what is in memory to a file."""
        if self._rows > self._segments.rows:
            series = self._whole()
            if self._ids:
                series[_IDS] = id_array(self._ids)
            self._segments.write(series)
            self._series, self._ids = {}, []

    def _read_back(self) -> None:
        """Have in memory what was written to files."""
        self._write()
        self._series = {name: [self._segments.whole(name)] for name in self._segments.names}
        self._ids = self._series.pop(_IDS)[0].tolist() if _IDS in self._series else []
        self._segments = SampleSegments()

    def files(self) -> dict[str, Path]:
        """The files with values that `state` leaves out, by name."""
        return self._segments.files()

    def fetch(self, fetch: Fetch) -> None:
        """Get the files of the states that were added."""
        self._segments.fetch(fetch)

    def state(self) -> dict[str, Tensor]:
        """What was kept, as tensors."""
        about = {
            "rows": self._rows,
            "ids": self._ids,
            "terms": self.terms,
            "worst": self._worst,
            "score": self._score,
            "segments": [asdict(each) for each in self._segments.segments],
        }
        return {"about": as_bytes(about), **{name: torch.from_numpy(all_) for name, all_ in self._whole().items()}}

    def add_state(self, tensors: Tensors) -> None:
        """Add what `state` gave."""
        series = dict(tensors)
        about = from_bytes(series.pop("about"))
        if not self._room(about["rows"]):
            return
        self._ids += about["ids"]
        self._score = self._score or about["score"]
        self.terms.update({name: tuple(terms) for name, terms in about["terms"].items()})
        for key, candidates in about["worst"].items():
            self._worst[key] = _worst([*self._worst.get(key, []), *map(tuple, candidates)])
        self._segments.segments += [Segment(**each) for each in about["segments"]]
        for name, tensor in series.items():
            self._series.setdefault(name, []).append(tensor.numpy())
        self._write_when_large()

    def _whole(self) -> dict[str, Array]:
        """The series in memory that have an entry for every sample there."""
        rows = self._rows - self._segments.rows
        joined = {name: np.concatenate(parts) for name, parts in sorted(self._series.items())}
        return {name: series for name, series in joined.items() if len(series) == rows}

    def result(self, rows: int, classes: Sequence[str] = ()) -> PerSampleValues:
        """The samples, ordered by their ids.

        Args:
            rows: how many samples were counted, also where there were too many to keep them.
            classes: the names of the classes, where decisions and targets are class numbers.
        """
        if self.full:
            note = (
                f"Per-sample values were not kept, as {max(rows, self._expected):,} samples are more than "
                f"{self.most:,}: comparisons are paired by resampled values, and the worst samples are not listed. "
                f"max_kept_samples= keeps more{'' if find_spec('pyarrow') else ', with pyarrow (assay[tables])'}."
            )
            return PerSampleValues(notes=(note,))
        if self._segments.segments:
            if self._rows > MOST_SAMPLES:
                self._write()
                return self._result_in_file(classes)
            self._read_back()
        series = self._whole()
        names, notes = _names(self._ids, series.get(_INDEX))
        if names is None:
            return PerSampleValues(notes=notes)
        order = np.argsort(names, kind="stable")
        ordered = {name: each[order] for name, each in series.items()}
        packed = {name: PackedArray.of(each) for name, each in ordered.items() if _is_of_samples(name)}
        digest = _print([ordered[_PRINT]]) if _PRINT in ordered else ""
        by_id = bool(self._ids) and not notes
        found = self._found({"ids": PackedArray.of(names[order]), **packed}, digest, classes, by_id)
        return replace(found, order=order, index=ordered.get(_INDEX), notes=notes)

    def _result_in_file(self, classes: Sequence[str]) -> PerSampleValues:
        """`result` of more samples than JSON holds, in a temporary file that is deleted with the report."""
        segments = self._segments
        names, order, notes = _names_in_segments(segments)
        if not names:
            return PerSampleValues(notes=notes)
        sources = {name: name for name in filter(_is_of_samples, segments.names)} | {"ids": names}
        sources |= {_INDEX: _INDEX} if _INDEX in segments.names and names != _INDEX else {}
        packed = _in_temporary_file(segments, sources, order)
        digest = _print(each[_PRINT] for each in segments.ordered([_PRINT], order)) if _PRINT in segments.names else ""
        found = self._found(packed, digest, classes, by_id=names == _IDS)
        index = packed["ids"] if names == _INDEX else packed.get(_INDEX)
        order = np.arange(len(packed["ids"])) if order is None else order
        return replace(found, order=order, index=index, notes=notes)

    def _found(
        self, packed: Mapping[str, PackedArray], digest: str, classes: Sequence[str], by_id: bool
    ) -> PerSampleValues:
        """What was kept of the samples, from their ids and series in order."""
        columns = {name.removeprefix(_COLUMN): packed[name] for name in sorted(packed) if name.startswith(_COLUMN)}
        worst = self._worst_by_id(by_id=by_id)
        samples = Samples(
            packed["ids"],
            tuple(Column(name, each) for name, each in columns.items()),
            packed.get(_DECISION),
            packed.get(_TARGET),
            digest,
            tuple(classes),
            tuple(raw for name, each in worst.items() if (raw := _raw(name, each, classes)) is not None),
            self._score if self._score in columns else "",
            clusters=packed.get(_CLUSTER),
            cluster=self._cluster if _CLUSTER in packed else "",
        )
        terms = {name: each for name, each in self.terms.items() if {*each} - {""} <= set(columns)}
        marks = {name: each[-1] for name, each in worst.items() if each[-1] is not None}
        return PerSampleValues(samples, terms, marks=marks)

    def _worst_by_id(self, by_id: bool) -> dict[str, Candidate]:
        """The worst samples of all metrics, each once."""
        worst = [each for candidates in self._worst.values() for each in candidates]
        return dict(sorted((str(each[1] if by_id else each[2]), each) for each in worst))


def _is_of_samples(name: str) -> bool:
    """Whether a series becomes a part of `Samples`."""
    return name.startswith(_COLUMN) or name in (_DECISION, _TARGET, _CLUSTER)


def _names_in_segments(segments: SampleSegments) -> tuple[str, Array | None, tuple[str, ...]]:
    """The series that names samples, the positions of the samples in its order, and what a reader must know."""
    if _IDS in segments.names:
        order = segments.order(_IDS)
        if not _is_repeated(each[_IDS] for each in segments.ordered([_IDS], order)):
            return _IDS, order, ()
        if _INDEX not in segments.names:
            return "", None, (_SHARED,)
        return _INDEX, segments.order(_INDEX), (_BY_INDEX,)
    return (_INDEX, segments.order(_INDEX), ()) if _INDEX in segments.names else ("", None, ())


def _is_repeated(chunks: Iterable[Array]) -> bool:
    """Whether a value comes twice among ordered ones."""
    last = None
    for chunk in chunks:
        if (chunk[1:] == chunk[:-1]).any() or (last is not None and chunk[0] == last):
            return True
        last = chunk[-1]
    return False


def _in_temporary_file(
    segments: SampleSegments, sources: Mapping[str, str], order: Array | None
) -> dict[str, PackedArray]:
    """Series as arrays of a report, by the names of the arrays."""
    packed: dict[str, PackedArray] = {}
    kinds: dict[str, str] = {}
    for name, source in sources.items():
        if segments.dtype(source).kind in "iu":
            chunks = (widened(each[source]) for each in segments.ordered([source], order))
            if (stepped := PackedArray.of_equal_steps(chunks)) is not None:
                packed[name] = stepped
                continue
        kinds[name] = narrowest(widened(each[source]) for each in segments.chunks([source]))
    if kinds:
        series = {sources[name] for name in kinds}
        rows = ({name: each[sources[name]] for name in kinds} for each in segments.ordered(series, order))
        file = SampleFile.temporary(lambda path: write_columns(path, kinds, rows))
        packed |= {name: file.packed(name, segments.rows, kind) for name, kind in kinds.items()}
    return packed


def _print(chunks: Iterable[Array]) -> str:
    """What tells the targets of a data set from others."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk.tobytes())
    return digest.hexdigest()[:16]


def _worst(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The worst of some candidates, in the order in which a report has them."""
    if not candidates:
        return []
    names = id_array([index if id_ is None else id_ for _, id_, index, *_ in candidates])
    return [candidates[row] for row in worst_rows(np.array([each[0] for each in candidates]), names, LIMIT)]


def _shown(rows: SampleRows, row: int, metric: Metric) -> tuple[str, str, Marks | None]:
    """What a report shows of a sample: prediction and target as strings, and what is drawn on its image."""
    if rows.raw is None:
        assert rows.target is not None  # as they are masks
        return "", "", mask_marks(rows.preds[row], rows.target[row])
    prediction, target = rows.raw[row]
    if rows.batch.ragged:
        return "", "", box_marks(prediction, target, getattr(metric, "box_format", "xyxy"))
    return excerpt(prediction), excerpt(target), None


def _raw(name: str, candidate: Candidate, classes: Sequence[str]) -> RawSample | None:
    """A bad sample as strings; of boxes, their classes; None of masks."""
    *_, prediction, target, marks = candidate
    if marks is None:
        return RawSample(name, prediction, target)
    if "boxes" not in marks:
        return None
    true, detected = ([each for each in marks["boxes"] if (each[-1] is None) == is_true] for is_true in (True, False))
    shown = ", ".join(f"{class_name(each[4], classes)} {each[5]:.2f}" for each in detected)
    return RawSample(name, excerpt(shown), excerpt(", ".join(class_name(each[4], classes) for each in true)))


def excerpt(sample: Any) -> str:
    """A raw sample as a short string; several references or tags with bars between them."""
    text = sample if isinstance(sample, str) else " | ".join(map(str, sample))
    shown = text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"
    return shown.encode("utf-8", "replace").decode()


def _names(ids: Sequence[Any], index: Array | None) -> tuple[Array | None, tuple[str, ...]]:
    """What samples are called: their ids where each has its own, else their indices."""
    if ids:
        names = id_array(ids)
        if len(set(names.tolist())) == len(names):
            return names, ()
        if index is None:
            return None, (_SHARED,)
        return index, (_BY_INDEX,)
    return np.empty(0, np.int64) if index is None else index, ()


def id_array(ids: Iterable[Any]) -> Array:
    """Ids as an array: of integers where all are, else of their strings."""
    ids = list(ids)
    if all(isinstance(each, int) and -(2**63) <= each < 2**63 for each in ids):
        return np.array(ids, np.int64)
    return np.array([str(each) for each in ids], object)


def host_array(tensor: Tensor) -> Array:
    """A copy on the CPU that NumPy can read."""
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.float()
    return np.array(to_host(tensor).numpy())
