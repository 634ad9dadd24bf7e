"""An evaluation that ends as soon as its rules are decided: samples in random order, and looks at what was counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from assay.errors import ConfigError, describe, plural
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.data.coverage import CoverageTracker, Lists
from assay.evaluation.data.data_source import DataSource
from assay.evaluation.observe.clusters import ClustersByIndex
from assay.evaluation.observe.observers import Observers
from assay.evaluation.observe.per_sample import PerSampleRecorder
from assay.evaluation.results.report_section import SECTION
from assay.metrics.base import Metric
from assay.report import Report, Section, Value
from assay.report.gating.stopping import StopWhen
from assay.report.inference.sequential import ClusterSizes
from assay.report.per_sample.packed_array import Array
from assay.report.value import terms_of

GROWTH = 1.05
"""How many times as many samples there are at the next look: looking costs as much as a look has samples."""


def in_random_order(source: DataSource, seed: int, clusters: Array | None = None) -> DataSource:
    """A data set whose samples come in random order, in batches of the same sizes: those so far stand for all.

    Args:
        source: the data set.
        seed: of the order.
        clusters: of samples by index: whole clusters come in random order, and samples of one after another.

    Raises:
        ConfigError: a stream, whose order is not known.
    """
    if source.shares is None:
        do = "Pass a data set with indices, or a DataLoader of one"
        raise ConfigError(describe("stop_when", "a stream, whose order may be any", "samples in random order", do))
    lists = source.shares.lists
    flat = np.concatenate([np.empty(0, np.int64), *lists])
    random = np.random.default_rng(seed)
    if clusters is None:
        flat = random.permutation(flat)
    else:
        present, codes = np.unique(clusters[flat], return_inverse=True)
        flat = flat[np.argsort(random.permutation(len(present))[codes], kind="stable")]
    shuffled: Lists = np.split(flat, np.cumsum([len(batch) for batch in lists])[:-1])
    how = f"{source.shares.how or 'all samples'}; in random order (seed {seed})"
    return replace(source, shares=replace(source.shares, lists=shuffled, how=how))


@dataclass
class EarlyEnd:
    """Looks at what was counted, and says whether the rules are decided.

    Attributes:
        rule: what ends the evaluation.
        metrics: what was asked for.
        observers: those that follow the samples.
        recorder: the one that keeps per-sample values.
        coverage: knows how many samples were counted.
        cluster_sizes: of samples in clusters.
        outcome: what was decided; empty while nothing is.
    """

    rule: StopWhen
    metrics: Mapping[str, Metric]
    observers: Observers
    recorder: PerSampleRecorder
    coverage: CoverageTracker
    cluster_sizes: ClusterSizes | None = None
    outcome: str = ""
    looks: int = 0
    _next: int = 1

    @classmethod
    def of(
        cls,
        options: EvaluateOptions,
        metrics: Mapping[str, Metric],
        observers: Observers,
        recorder: object,
        coverage: CoverageTracker,
        clusters: ClustersByIndex | None = None,
    ) -> EarlyEnd | None:
        """What ends an evaluation early; None where nothing does."""
        if options.stop_when is None:
            return None
        assert isinstance(recorder, PerSampleRecorder), recorder  # options and data were checked
        sizes = None
        if clusters is not None and coverage.expected is not None:
            sizes = ClusterSizes.of(clusters.numbers[coverage.expected])
        return cls(StopWhen.of(options.stop_when), metrics, observers, recorder, coverage, sizes)

    def is_decided(self) -> bool:
        """Whether the rules are decided by the samples so far; looked at as their number grows by a twentieth."""
        rows = self.coverage.rows
        if rows < self._next:
            return False
        self._next = max(rows + 1, int(rows * GROWTH))
        self.looks += 1
        self.observers.flush()
        self.outcome = self.rule.outcome(self._report(), self.cluster_sizes)
        return bool(self.outcome)

    def _report(self) -> Report:
        kept = self.recorder.result(self.coverage.rows)
        if kept.samples is None:
            got = " ".join(kept.notes) or "samples without ids"
            raise ConfigError(describe("stop_when", got, "per-sample values", "Pass unique ids, and fewer samples"))
        values = []
        for name, (numerator, denominator) in kept.terms.items():
            terms, weights = terms_of(kept.samples, numerator, denominator, None)
            with np.errstate(all="ignore"):
                mean = float(np.divide(terms.sum(), weights.sum()))
            better = self.metrics[name].higher_is_better
            values.append(Value(name, mean, numerator=numerator, denominator=denominator, higher_is_better=better))
        return Report("so far", (Section(SECTION, tuple(values), samples=kept.samples),))

    def end(self) -> None:
        """Expect no more samples than were counted."""
        assert self.coverage.expected is not None, "a data set with indices"
        self._all = int(self.coverage.expected.sum())
        if self.outcome:
            self.coverage.expected = self.coverage.expected & ((self.coverage.counts > 0) | self.coverage.failed)

    def reported(self, report: Report) -> Report:
        """The report, with what ended the evaluation."""
        of = f"{self.coverage.rows:,} of {self._all:,} samples in random order, {plural(self.looks, 'look')}"
        if not self.outcome:
            note = f"Not decided after {of}: stop_when found not enough evidence."
            return replace(report, notes=(*report.notes, note))
        if self.coverage.rows < self._all:
            report = self.rule.marked(report, self.cluster_sizes)
        note = f"Ended after {of}: {self.outcome}. Intervals hold at any number of looks."
        return replace(report, notes=(*report.notes, note))
