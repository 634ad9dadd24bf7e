"""What a meter is made with: metrics under names."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric
from assay.metrics.parsing import as_metrics
from assay.tally.inputs import type_name

RESERVED = frozenset({"self", "weighted", "strict", "stage_bytes", "labels", "recount", "fingerprints"})
"""Names that a metric of a meter cannot have, as they are those of options."""


def named_metrics(
    metrics: Sequence[Metric | str], named: Mapping[str, Metric | str], labels: Any = None
) -> dict[str, Metric]:
    """The metrics by name; those without one are named after their class, or as they are written.

    Three labels or more are the classes of metrics that are written as strings.
    """
    if labels is not None and isinstance(labels, Metric):
        do = "A metric cannot be named labels, which is an option"
        raise ConfigError(describe("labels", repr(labels), "the strings of all classes", do))
    defaults = {}
    if labels is not None and isinstance(labels, Sequence) and len(labels) > 2:
        defaults["num_classes"] = len(labels)
    opened = as_metrics(metrics, defaults=defaults) if metrics else {}
    pairs = list(opened.items()) if isinstance(opened, dict) else [(type(each).__name__, each) for each in opened]
    names = [name for name, _ in pairs]
    for name in names:
        if names.count(name) > 1 or name in named:
            raise ConfigError(
                describe("Meter", f"two metrics named {name}", "names that differ", "Give names as keywords")
            )
    everything: dict[str, Metric] = dict(pairs) | as_metrics(named, defaults=defaults)
    reserved = sorted(RESERVED & set(everything))
    if reserved:
        do = "Give the metric another name"
        raise ConfigError(describe("Meter", f"a metric named {reserved[0]}", "a name that is no option of Meter", do))
    if not everything:
        raise ConfigError(describe("Meter", "no metric", "one or more", "Write Meter(acc=Accuracy(num_classes=10))"))
    for name, metric in everything.items():
        if not isinstance(metric, Metric):
            raise _not_of_meter(name, metric)
    return everything


_OF_METRICS = ("num_classes", "num_labels", "threshold", "top_k", "ignore_index")


def _not_of_meter(name: str, value: object) -> ConfigError:
    """The error for an argument of a meter that is neither a metric nor an option."""
    options = sorted(RESERVED - {"self"})
    if isinstance(value, list | tuple | Mapping):
        how = "**" if isinstance(value, Mapping) else "*"
        return ConfigError(describe("Meter", type_name(value), "metrics", f"Write Meter({how}metrics)"))
    close = difflib.get_close_matches(name, options, 1)
    if isinstance(value, int | float) and (close or name in _OF_METRICS):
        expected = f"a metric, or one of the options {', '.join(options)}"
        do = f"Write {close[0]}=" if close else f"Give {name} to the metric: Accuracy({name}={value!r})"
        return ConfigError(describe("Meter", f"{name}={value!r}", expected, do))
    return not_a_metric(value, name)


def require_names(where: str, names: Collection[str], metrics: Collection[str]) -> None:
    """Raise a `ConfigError` where a name is that of no metric."""
    unknown = sorted(map(str, set(names) - set(metrics)))
    if unknown:
        close = difflib.get_close_matches(unknown[0], metrics, 1)
        do = f"Write {close[0]!r}" if close else "Pass names of metrics of the meter"
        raise ConfigError(describe(where, ", ".join(unknown), f"some of {', '.join(metrics)}", do))


def chosen_metrics(
    metrics: Mapping[str, Metric], names: Sequence[str], renamed: Mapping[str, str]
) -> dict[str, Metric]:
    """Some of the metrics, by their names and under other ones.

    Raises:
        ConfigError: there is no such metric, or no name was given.
    """
    chosen = {name: name for name in names} | dict(renamed)
    if not chosen:
        raise ConfigError(describe("only", "no name", f"some of {', '.join(metrics)}", "Pass the names of metrics"))
    require_names("only", chosen.values(), metrics)
    return {new: metrics[name] for new, name in chosen.items()}


def metrics_text(metrics: Mapping[str, Metric], labels: Sequence[str] = ()) -> str:
    """Metrics and their names, as they are written, and labels where there are some."""
    return ", ".join(
        [f"{name}={metric!r}" for name, metric in metrics.items()] + [f"labels={list(labels)}"] * bool(labels)
    )


def not_a_metric(value: object, name: str = "") -> ConfigError:
    """The error for what stands where a metric should; the class of a metric, a function, or one of another library.

    Args:
        value: what there is.
        name: under which name it is.
    """
    do = 'Pass an instance such as Accuracy(num_classes=10), or a string such as "accuracy:num_classes=10"'
    library = type(value).__module__.partition(".")[0]
    if isinstance(value, type) and issubclass(value, Metric):
        do = f"Pass {value.__name__}(), with its arguments"
    elif library in ("torchmetrics", "ignite", "torcheval"):
        do = "Pass its counterpart in assay: docs/metrics.md names them, and `assay migrate` writes them"
    elif callable(value) and not isinstance(value, type):
        do = "Pass PerSample(function), of a function with one value a sample"
    where = f"metrics: {name}" if name and name != type(value).__name__ else "metrics"
    return ConfigError(describe(where, type_name(value), "a metric", do))
