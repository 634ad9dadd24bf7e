"""What is counted of samples, whoever predicts them: the meter of the metrics, and what else observes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from importlib.util import find_spec
from typing import Any

from assay.errors import ConfigError, describe
from assay.evaluation.arguments.options import ReportOptions
from assay.evaluation.observe.bootstrap_groups import BootstrapGroups
from assay.evaluation.observe.clusters import cluster_name
from assay.evaluation.observe.grouped_terms import GroupedTerms
from assay.evaluation.observe.observers import Observer
from assay.evaluation.observe.per_sample import PerSampleRecorder
from assay.evaluation.observe.query_recorder import QueryRecorder
from assay.evaluation.observe.slices import Slicer, SliceSpec
from assay.evaluation.observe.worst_queries import ranking_metric
from assay.meter import Meter
from assay.meter.options import not_a_metric
from assay.metrics.base import Metric
from assay.metrics.parsing import as_metrics
from assay.report.per_sample.samples import MOST_SAMPLES


def meter_of(metrics: Any, weighted: bool) -> Meter:
    """A meter that has counted nothing."""
    metrics = as_metrics(metrics)
    if isinstance(metrics, Meter):
        return metrics.fresh()
    if isinstance(metrics, Metric):
        return Meter(metrics, weighted=weighted)
    if isinstance(metrics, Mapping):
        _check_names(metrics)
        return Meter(weighted=weighted, **metrics)
    if isinstance(metrics, Sequence) and not isinstance(metrics, bytes):
        if not metrics:
            raise ConfigError(describe("metrics", "none", "one or more", 'Pass ["accuracy:num_classes=10"]'))
        return Meter(*metrics, weighted=weighted)
    if isinstance(metrics, Set | Iterator):
        got, do = type(metrics).__name__, "Pass a list, whose order is that of the report"
        raise ConfigError(describe("metrics", got, "a metric, several, or a meter", do))
    raise not_a_metric(metrics)


def _check_names(metrics: Mapping[Any, Any]) -> None:
    """Raise if a meter does not accept a name for a metric."""
    for name in metrics:
        if not isinstance(name, str):
            do = "Pass {'accuracy': Accuracy()}"
            raise ConfigError(describe("metrics", f"the name {name!r}", "a string", do))
        if name in _NOT_NAMES:
            expected = f"a text other than {', '.join(_NOT_NAMES)}"
            raise ConfigError(describe("metrics", f"the name {name!r}", expected, "Call the metric something else"))


_NOT_NAMES = ("self", "weighted", "strict", "stage_bytes", "recount", "fingerprints")  # the meter's own arguments


def most_samples(options: ReportOptions) -> int:
    """Of how many samples values are kept: of no more than JSON holds where nothing can write Arrow files."""
    most = options.max_kept_samples
    return most if most <= MOST_SAMPLES or find_spec("pyarrow") is not None else MOST_SAMPLES


def sample_observers(
    like: Meter,
    slices: SliceSpec,
    options: ReportOptions,
    expected: int | None,
    alone: bool,
    *,
    in_files: bool = False,
    keeps_documents: bool = True,
) -> dict[str, Observer]:
    """What observes every sample in addition to the metrics, each after those that it needs.

    Args:
        like: the meter of the metrics.
        slices: what to measure parts of the samples by.
        options: which of it is wanted.
        expected: how many samples there are, or 0 where that is not known; None where samples have no ids.
        alone: whether one process counts everything.
        in_files: many per-sample values are written to temporary files while they are counted.
        keeps_documents: whether it is kept which sample each document of a query is.

    Raises:
        ConfigError: something is to be shown of queries, and no metric is made of a number a query.
    """
    observers: dict[str, Observer] = {}
    ranking = ranking_metric(like.metrics)
    if options.show and ranking is None:
        got = f"{options.show!r} with {', '.join(like.metrics)}"
        do = "Measure ndcg, say, or leave show out"
        raise ConfigError(describe("show", got, "a metric of retrieval with a number a query", do))
    if options.keep_samples and expected is not None and ranking is not None:
        name, metric = ranking
        if metric.by_row or keeps_documents:
            observers["queries"] = QueryRecorder(name, metric, 0 if metric.by_row else most_samples(options))
    recorder, cluster = None, cluster_name(options.cluster)
    if options.keep_samples and expected is not None:
        recorder = observers["samples"] = PerSampleRecorder(
            like.metrics, expected, most_samples(options), in_files, cluster
        )
    groups = None
    if options.confidence_level is not None:
        groups = observers["groups"] = BootstrapGroups(like, recorder, options.seed, alone, cluster=cluster)
    if slices.slices:
        observers["slices"] = Slicer(slices.slices, like, 0 if recorder is None else recorder.most, groups)
    if slices.tables:
        observers["by"] = GroupedTerms(slices.tables, like.metrics)
    return observers
