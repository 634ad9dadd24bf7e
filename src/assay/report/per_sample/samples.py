"""What a report keeps of every sample, so that two reports can be compared sample by sample.

A sample has an id, and to each metric that is a mean over samples it contributes one number. Where there are a decision
and a target they are kept, too: then a comparison can say which samples got better or worse.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, Self

import numpy as np

from assay._records import OPTIONAL, Record
from assay.errors import ConfigError, DtypeError, ShapeError, describe
from assay.render.pictures import Picture
from assay.render.token_strips import TokenStrip
from assay.report.data_frames import data_frame
from assay.report.per_sample.aligned_chunks import aligned_chunks
from assay.report.per_sample.packed_array import CHUNK_ROWS, Array, PackedArray

MOST_SAMPLES = 2_000_000
"""How many samples at most have their values in the JSON of a report, and are kept by default."""


class Column(Record):
    """What each sample contributes to a metric.

    Args:
        name: what it is (``"correct"``, ``"squared error"``).
        values: booleans or numbers, one for each sample.
    """

    name: str
    values: PackedArray


class RawSample(Record):
    """A raw sample as strings, shortened; of images, the classes of their boxes.

    Args:
        id: which sample it is.
        prediction: what was predicted.
        target: what would have been right.
    """

    id: str
    prediction: str
    target: str


class Samples(Record):
    """The samples of a section, packed; made by `Samples.pack`.

    Args:
        ids: what tells the samples apart: integers or strings, each once.
        columns: what they contribute to the metrics; `Value.column` names one.
        decision: what was decided for each: a class, as a number or a text.
        target: what would have been right, or the true value.
        data: what tells the data set from others (a digest, a name with a version), empty where that is not known.
        classes: the names of the classes, where decision and target are class numbers and these are known.
        raw: the worst samples of metrics of strings or of boxes.
        score: the column that tells how good each sample is, where no metric is a mean over samples; empty for none.
        pictures: the worst samples, and some of the other errors, where they are images.
        strips: the worst samples, where they are text that a language model predicted.
        clusters: the number of the cluster of each sample, such as the passage of a question, where samples of one
            cluster resemble each other; None where samples are independent. The same number is the same cluster.
        cluster: what clusters are, such as the name of a column; empty where samples are independent.

    Raises:
        ShapeError: the parts have not one value for each id.
        DtypeError: ids are neither integers nor strings, or a column holds strings.
        ConfigError: an id or the name of a column comes twice; or there is no such column as `score`.
    """

    ids: PackedArray
    columns: tuple[Column, ...] = ()
    decision: PackedArray | None = None
    target: PackedArray | None = None
    data: str = ""
    classes: tuple[str, ...] = ()
    raw: tuple[RawSample, ...] = ()
    score: str = ""
    pictures: tuple[Picture, ...] = ()
    strips: tuple[TokenStrip, ...] = ()
    clusters: PackedArray | None = field(default=None, metadata=OPTIONAL)
    cluster: str = field(default="", metadata=OPTIONAL)

    @classmethod
    def pack(
        cls,
        ids: Any,
        columns: Mapping[str, Any],
        *,
        decision: Any = None,
        target: Any = None,
        data: str = "",
        classes: Sequence[str] = (),
        raw: Sequence[RawSample] = (),
        score: str = "",
        clusters: Any = None,
        cluster: str = "",
    ) -> Self:
        """Keep samples, in as few bytes as they need.

        Args:
            ids: integers or strings, each once: a list, a range, an array, a host tensor.
            columns: names and series of booleans or numbers, as many as ids.
            decision: as many decisions, if there are any.
            target: as many targets, if there are any.
            data: what tells the data set from others.
            classes: the names of the classes that decisions and targets are numbers of.
            raw: the worst samples of metrics of strings or of boxes.
            score: the column that tells how good each sample is, where no metric is a mean over samples.
            clusters: as many numbers of clusters, integers, where samples of one cluster resemble each other.
            cluster: what clusters are.

        Raises:
            ShapeError: the parts have not one value for each id.
            DtypeError: ids are neither integers nor strings, or a column holds strings.
            ConfigError: an id or the name of a column comes twice.

        Example:
            >>> samples = Samples.pack(range(4), {"correct": [True, False, True, True]}, target=[0, 1, 1, 0])
            >>> samples.column("correct").mean()
            np.float64(0.75)
        """
        return cls(
            PackedArray.of(ids, "ids"),
            tuple(Column(name, PackedArray.of(values, f"columns[{name!r}]")) for name, values in columns.items()),
            None if decision is None else PackedArray.of(decision, "decision"),
            None if target is None else PackedArray.of(target, "target"),
            data,
            tuple(classes),
            tuple(raw),
            score,
            clusters=None if clusters is None else PackedArray.of(clusters, "clusters"),
            cluster=cluster,
        )

    def __repr__(self) -> str:
        """One line: how many samples, and the columns."""
        names = ", ".join(column.name for column in self.columns)
        return f"<Samples {len(self):,}{f': {names}' if names else ''}>"

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def cluster_numbers(self) -> tuple[Array, Array]:
        """The numbers of the clusters, each once, and for each sample which of them it is in."""
        assert self.clusters is not None, self.cluster
        numbers, codes = np.unique(self.clusters.values, return_inverse=True)
        return numbers, codes

    def column(self, name: str) -> Array:
        """The values of a column.

        Raises:
            ConfigError: there is no such column.
        """
        return self.packed(name).values

    def packed(self, name: str) -> PackedArray:
        """A column whose values are not read yet.

        Raises:
            ConfigError: there is no such column.
        """
        for column in self.columns:
            if column.name == name:
                return column.values
        there = ", ".join(repr(column.name) for column in self.columns) or "none"
        raise ConfigError(describe("column", repr(name), f"one of the columns ({there})", "Name a column of Samples"))

    def to_dataframe(self) -> Any:
        """The samples as a pandas DataFrame, one row a sample.

        Returns:
            Columns `id`, `target` and `decision` where they were kept (as names of classes where these are known), and
            a column for each of `columns`.

        Raises:
            MissingDependencyError: pandas is not installed.
        """
        labels = {"target": self.target, "decision": self.decision}
        series = {"id": self.ids.values} | {
            name: self._named(packed.values) for name, packed in labels.items() if packed is not None
        }
        series |= {column.name: column.values.values for column in self.columns}
        return data_frame(series, list(series), "Samples.to_dataframe")

    def _named(self, labels: Array) -> Array:
        """Labels as names of classes, where all have one."""
        whole = labels.dtype.kind in "iu" and len(labels) and 0 <= labels.min() <= labels.max() < len(self.classes)
        return np.array(self.classes)[labels] if whole else labels

    def where(self, members: Array) -> Samples:
        """Some of the samples, with what was kept of them; without texts and pictures.

        Args:
            members: which, as booleans or as positions.
        """
        return Samples.pack(
            self.ids.values[members],
            {column.name: column.values.values[members] for column in self.columns},
            decision=None if self.decision is None else self.decision.values[members],
            target=None if self.target is None else self.target.values[members],
            data=self.data,
            classes=self.classes,
            score=self.score,
            clusters=None if self.clusters is None else self.clusters.values[members],
            cluster=self.cluster,
        )

    def _check(self) -> None:
        if self.score and self.score not in {column.name for column in self.columns}:
            self.column(self.score)
        parts = {f"columns[{column.name!r}]": column.values for column in self.columns}
        if len(parts) < len(self.columns):
            names = [column.name for column in self.columns]
            got = f"{len(names)} columns with {len(parts)} names"
            raise ConfigError(describe("Samples.columns", got, "a name of its own for each", "Rename one"))
        for name, packed in parts.items():
            if packed.is_text:
                raise DtypeError(describe(f"Samples.{name}", "texts", "booleans or numbers", "Pass what can be added"))
        labels = {"decision": self.decision, "target": self.target, "clusters": self.clusters}
        for name, each in {**parts, **{name: each for name, each in labels.items() if each is not None}}.items():
            if len(each) != len(self.ids):
                got = f"{len(each):,} values"
                raise ShapeError(
                    describe(f"Samples.{name}", got, f"{len(self.ids):,}, one for each id", "Pass as many")
                )
        self._check_ids()

    @property
    def is_stored(self) -> bool:
        """Whether arrays are in a file beside the report, and were checked when it was written."""
        parts = (self.ids, self.decision, self.target, self.clusters, *(column.values for column in self.columns))
        return any(each is not None and each.form == "file" for each in parts)

    def _check_ids(self) -> None:
        if self.ids.form == "file":
            return
        if self.ids.form == "range" or not len(self.ids):
            if self.ids.data.endswith(" 0") and len(self.ids) > 1:
                raise _twice(self.ids.data.split()[0])
            return
        ids = self.ids.values
        if ids.dtype.kind not in "iO":
            raise DtypeError(describe("Samples.ids", ids.dtype, "integers or strings", "Pass indices or names"))
        ordered = np.sort(ids)
        again = ordered[1:] == ordered[:-1]
        if again.any():
            raise _twice(repr(ordered[1:][again][0].item() if ids.dtype.kind == "i" else ordered[1:][again][0]))


def align(a: Samples, b: Samples) -> Array | str:
    """Which samples of ``b`` are those of ``a``.

    Args:
        a: samples.
        b: other samples, of the same data if they can be paired, in any order.

    Returns:
        For each sample of ``a`` its position in ``b``, or why the two cannot be paired, as a part of a sentence.

    Example:
        >>> of = lambda *ids: Samples.pack(ids, {})
        >>> align(of(5, 3, 9), of(9, 5, 3))
        array([1, 2, 0])
        >>> align(of(5, 3, 9), of(9, 5, 4))
        '1 sample is in the first only, 1 in the second only'
    """
    if a.data and b.data and a.data != b.data:
        return f"other data: {a.data!r:.60} and {b.data!r:.60}"
    if len(a) and len(b) and a.ids.is_text != b.ids.is_text:
        return "ids are numbers in one and texts in the other"
    position = np.arange(len(a), dtype=np.uint32 if CHUNK_ROWS < len(a) < 2**32 else np.int64)
    if not _are_equal(a.ids, b.ids):
        ids_a, ids_b = a.ids.values, b.ids.values
        if apart := _id_difference(ids_a, ids_b):
            return apart
        position[np.argsort(ids_a, kind="stable")] = np.argsort(ids_b, kind="stable")
    other = _other_targets(a, b, position)
    return other if other else position


def is_known_to_be_the_same(a: Samples, b: Samples) -> bool:
    """Whether two sets that `align` pairs share more than ids: targets, or the name of the data."""
    return bool(a.data and b.data) or (a.target is not None and b.target is not None)


def _are_equal(a: PackedArray, b: PackedArray) -> bool:
    """Whether two arrays have the same values in the same order."""
    if len(a) != len(b) or (a.form == b.form == "range" and a.data != b.data):
        return False
    return all(np.array_equal(*pair) for pair in zip(a.chunks(), b.chunks(), strict=True))


def _id_difference(ids_a: Array, ids_b: Array) -> str:
    only_a, only_b = len(np.setdiff1d(ids_a, ids_b)), len(np.setdiff1d(ids_b, ids_a))
    if not only_a and not only_b:
        return ""
    return (
        f"{only_a:,} {'sample is' if only_a == 1 else 'samples are'} in the first only, {only_b:,} in the second only"
    )


def _other_targets(a: Samples, b: Samples, position: Array) -> str:
    if a.target is None or b.target is None:
        return ""
    count, first, start = 0, 0, 0
    for target_a, target_b in aligned_chunks(a.target, b.target, position):
        same = np.asarray(target_a == target_b, dtype=bool)
        if target_a.dtype.kind == target_b.dtype.kind == "f":
            same |= np.isnan(target_a) & np.isnan(target_b)
        wrong = np.flatnonzero(np.broadcast_to(~same, target_a.shape))
        if len(wrong) and not count:
            first = start + int(wrong[0])
        count, start = count + len(wrong), start + len(target_a)
    if not count:
        return ""
    of = "sample has" if count == 1 else "samples have"
    return f"{count:,} {of} another target, the first is {a.ids.take(np.array([first]))[0]!s:.40}"


def _twice(sample: str) -> ConfigError:
    expected = "each id once"
    return ConfigError(describe("Samples.ids", f"{sample:.60} more than once", expected, "Give each sample its own id"))
