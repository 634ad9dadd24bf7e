"""Confusion matrices as data: of counts, of shares, and of two runs."""

from __future__ import annotations

from dataclasses import dataclass

from assay._records import Record
from assay.errors import ShapeError, describe
from assay.render.text import number


class ConfusionPlot(Record, tag="confusion_matrix"):
    """How often each class was predicted for each target.

    Args:
        name: the title.
        labels: the names of the N classes.
        counts: N rows of N counts; rows are targets, columns are predictions.

    Raises:
        ShapeError: the counts are not N by N.

    Example:
        >>> matrix = ConfusionPlot("animals", ("cat", "dog"), [[8, 2], [1, 9]])
        >>> matrix.summary()
        '17 of 20 samples are on the diagonal, 2 classes. Most frequent error: cat taken for dog, 2 times.'
        >>> matrix.confusions()
        (('cat', 'dog', 2), ('dog', 'cat', 1))
    """

    name: str
    labels: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]

    def _check(self) -> None:
        expected = f"{len(self.labels)} rows of {len(self.labels)} counts"
        if len(self.counts) != len(self.labels) or any(len(row) != len(self.labels) for row in self.counts):
            got = f"{len(self.counts)} rows of {sorted({len(row) for row in self.counts})}"
            raise ShapeError(describe("ConfusionPlot.counts", got, expected, "Give one label for each class"))

    def confusions(self, limit: int = 5) -> tuple[tuple[str, str, int], ...]:
        """The most frequent errors as (target, prediction, count), the most frequent first."""
        errors = [
            (count, -i, -j) for i, row in enumerate(self.counts) for j, count in enumerate(row) if i != j and count
        ]
        return tuple((self.labels[-i], self.labels[-j], count) for count, i, j in sorted(errors, reverse=True)[:limit])

    def summary(self) -> str:
        total = sum(map(sum, self.counts))
        right = sum(row[i] for i, row in enumerate(self.counts))
        text = f"{right:,} of {total:,} samples are on the diagonal, {len(self.labels)} classes."
        for target, pred, count in self.confusions(1):
            text += f" Most frequent error: {target} taken for {pred}, {count:,} times."
        return text


@dataclass(frozen=True)
class MatrixPlot:
    """A confusion matrix of shares or of sums of weights.

    Args:
        name: the title.
        labels: the names of the N classes.
        counts: N rows of N numbers of 0 or more; rows are targets, columns are predictions.
    """

    name: str
    labels: tuple[str, ...]
    counts: tuple[tuple[float, ...], ...]

    def summary(self) -> str:
        total = sum(map(sum, self.counts))
        right = sum(row[i] for i, row in enumerate(self.counts))
        return f"{number(right)} of {number(total)} is on the diagonal, {len(self.labels)} classes."


class ConfusionDifference(Record, tag="confusion_difference"):
    """Two confusion matrices of the same classes, shown by how they differ.

    Args:
        name: the title.
        labels: the names of the N classes.
        before: N rows of N counts of the baseline; rows are targets, columns are predictions.
        now: those of the run.

    Example:
        >>> matrix = ConfusionDifference("animals", ("a", "b"), [[8, 2], [1, 9]], [[9, 1], [3, 7]])
        >>> matrix.summary()
        'On the diagonal 16 of 20 samples, and 17 of 20 before. Largest change: b taken for a, 3 times instead of 1.'
    """

    name: str
    labels: tuple[str, ...]
    before: tuple[tuple[int, ...], ...]
    now: tuple[tuple[int, ...], ...]

    def _check(self) -> None:
        for counts in (self.before, self.now):
            ConfusionPlot(self.name, self.labels, counts)

    def summary(self) -> str:
        right, right_before = (sum(row[i] for i, row in enumerate(counts)) for counts in (self.now, self.before))
        total, total_before = (sum(map(sum, counts)) for counts in (self.now, self.before))
        text = f"On the diagonal {right:,} of {total:,} samples, and {right_before:,} of {total_before:,} before."
        changes = [
            (abs(now - before), -i, -j, before, now)
            for i, (row, row_now) in enumerate(zip(self.before, self.now, strict=True))
            for j, (before, now) in enumerate(zip(row, row_now, strict=True))
            if i != j and now != before
        ]
        if changes:
            _, i, j, before, now = max(changes)
            names = f"{self.labels[-i]} taken for {self.labels[-j]}"
            text += f" Largest change: {names}, {now:,} times instead of {before:,}."
        return text
