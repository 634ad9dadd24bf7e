"""Metrics as they are written: ``[name=]metric[:argument=value,...]``, or several with commas."""

from __future__ import annotations

import ast
import difflib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import assay.metrics
from assay.errors import ConfigError, describe
from assay.metrics.base import Metric


def as_text(name: str, metric: Metric) -> str:
    """A metric as a string, of which `open_metrics` makes an equal metric.

    Example:
        >>> as_text("f1", assay.metrics.F1Score(num_classes=3, average="micro"))
        'f1:num_classes=3,average=micro'
        >>> as_text("best", assay.metrics.Accuracy())
        'best=acc'
    """
    cls = type(metric).__name__
    kind = next((short for short, meant in SHORT.items() if meant == (cls, {})), cls.lower())
    with suppress(ConfigError):
        kind = name if _class_name(name) == (cls, {}) else kind
    given = {field.name: getattr(metric, field.name) for field in fields(metric)}  # type: ignore[arg-type]
    defaults = {field.name: field.default for field in fields(metric)}  # type: ignore[arg-type]
    arguments = ",".join(f"{key}={_value_text(value)}" for key, value in given.items() if value != defaults[key])
    return f"{'' if kind == name else f'{name}='}{kind}{':' * bool(arguments)}{arguments}"


def _value_text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value).replace(" ", "").lower()


def as_metrics(metrics: Any, shared: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None) -> Any:
    """Strings that describe metrics, as metrics by name; anything else unchanged.

    Args:
        metrics: a string as `open_metrics` takes it, a sequence of strings and metrics, or these by name.
        shared: see `open_metrics`.
        defaults: see `open_metrics`.

    Raises:
        ConfigError: a string is no metric, or there are shared arguments and no string.

    Example:
        >>> as_metrics({"top2": "accuracy:num_classes=10,top_k=2"})
        {'top2': Accuracy(num_classes=10, top_k=2)}
        >>> list(as_metrics(["accuracy,f1", assay.metrics.AUROC()]))
        ['accuracy', 'f1', 'AUROC']
    """
    if isinstance(metrics, str):
        return open_metrics([metrics], shared, defaults)
    if shared:
        _check_takes(metrics, shared)
    if isinstance(metrics, Mapping):
        options = {**(defaults or {}), **(shared or {})}
        return {name: _only(each, options) if isinstance(each, str) else each for name, each in metrics.items()}
    if not isinstance(metrics, Sequence) or not any(isinstance(each, str) for each in metrics):
        return metrics
    opened = open_metrics([each for each in metrics if isinstance(each, str)], shared, defaults)
    for metric in (each for each in metrics if not isinstance(each, str)):
        _add(opened, type(metric).__name__, metric)
    return opened


def _check_takes(metrics: Any, shared: Mapping[str, Any]) -> None:
    """Raise where arguments are given for metrics of which none is written as a string."""
    each = metrics.values() if isinstance(metrics, Mapping) else metrics if isinstance(metrics, Sequence) else ()
    if not any(isinstance(metric, str) for metric in each):
        key, value = next(iter(shared.items()))
        got, do = f"{value} with metrics that are objects", f"Write Accuracy({key}={value}), or metrics='accuracy'"
        raise ConfigError(describe(key, got, "metrics that are written as strings", do))


def _only(text: str, options: Mapping[str, Any]) -> Metric:
    """The one metric in a text that has a name already."""
    (head, arguments), *others = _heads(text) or [("", "")]
    if others or "=" in head:
        do = "Write accuracy:num_classes=10 under each name"
        raise ConfigError(describe("metrics", repr(text), "one metric without a name", do))
    return _metric(head, arguments, options)


def _add(metrics: dict[str, Metric], name: str, metric: Metric) -> None:
    if name in metrics:
        do = "Give names, as in a=accuracy:num_classes=10"
        raise ConfigError(describe("metrics", f"{name} twice", "names that differ", do))
    metrics[name] = metric


def open_metrics(
    texts: Sequence[str], shared: Mapping[str, Any] | None = None, defaults: Mapping[str, Any] | None = None
) -> dict[str, Metric]:
    """Metrics by name, each as ``[name=]metric[:argument=value,...]``; ``wer,bleu:smooth=true,cer`` are three.

    Args:
        texts: metrics as written; capitals, dashes and the endings "Score" and "Error" may be left out, and the short
            names of `SHORT` may be used.
        shared: arguments for every metric that has them; an argument of the metric itself wins.
        defaults: the same, that perhaps no metric has; `shared` wins.

    Example:
        >>> top2 = open_metrics(["top2=accuracy:top_k=2", "mse"], {"num_classes": 10})["top2"]
        >>> top2.num_classes, top2.top_k
        (10, 2)
    """
    heads = [each for text in texts for each in _heads(text)]
    if not heads:
        raise ConfigError(describe("metrics", "none", "one or more", "Write accuracy:num_classes=10"))
    metrics: dict[str, Metric] = {}
    for head, arguments in heads:
        label, _, kind = head.rpartition("=")
        if not _is_metric(kind) and re.search(r"[(\s;]", head):
            fixed = re.sub(r"[(;\s]+", ":", head.replace(")", ""), count=1)
            fixed = ",".join(head.split()) if all(map(_is_metric, head.split())) else fixed
            raise ConfigError(describe("metrics", repr(head), "metric:argument=value", f"Write {fixed}"))
        metric = _metric(kind, arguments, {**(defaults or {}), **(shared or {})})
        _add(metrics, label or kind, metric)
    for key, value in (shared or {}).items():
        if not any(hasattr(metric, key) for metric in metrics.values()):
            option = f"--{key.replace('_', '-')}"
            expected = f"a metric with the argument {key}"
            raise ConfigError(describe(option, f"{value}, but only {', '.join(metrics)}", expected, f"Drop {option}"))
    return metrics


def _heads(text: str) -> list[tuple[str, str]]:
    """Each metric in a text, and its arguments: `name=value` after a colon, up to the next metric."""
    heads: list[tuple[str, str]] = []
    has_arguments = False
    for part in filter(None, map(str.strip, between(text))):
        head, colon, first = part.partition(":")
        if has_arguments and "=" in part and not colon:
            heads[-1] = heads[-1][0], f"{heads[-1][1]},{part}"
        else:
            heads.append((head.strip(), first))
            has_arguments = bool(colon)
    return heads


_OF_METRICS = (Metric.__name__, "Arithmetic", "Classwise", "PerOutput")  # metrics of metrics have no name of one word
_OF_FUNCTION = "PerSample"

SHORT: dict[str, tuple[str, dict[str, Any]]] = {
    "acc": ("Accuracy", {}),
    "f1": ("F1Score", {}),
    "iou": ("JaccardIndex", {}),
    "mcc": ("MatthewsCorrCoef", {}),
    "ap": ("AveragePrecision", {}),
    "auc": ("AUROC", {}),
    "ece": ("CalibrationError", {}),
    "nll": ("LogLoss", {}),
    "mse": ("MeanSquaredError", {}),
    "rmse": ("MeanSquaredError", {"squared": False}),
    "mae": ("MeanAbsoluteError", {}),
    "mape": ("MeanAbsolutePercentageError", {}),
    "r2": ("R2Score", {}),
    "pearson": ("PearsonCorrCoef", {}),
    "spearman": ("SpearmanCorrCoef", {}),
    "kendall": ("KendallRankCorrCoef", {}),
    "ccc": ("ConcordanceCorrCoef", {}),
    "wer": ("WordErrorRate", {}),
    "cer": ("CharErrorRate", {}),
    "mer": ("MatchErrorRate", {}),
    "wil": ("WordInfoLost", {}),
    "wip": ("WordInfoPreserved", {}),
    "ter": ("TranslationEditRate", {}),
    "eed": ("ExtendedEditDistance", {}),
    "map": ("RetrievalMAP", {}),
    "mrr": ("RetrievalMRR", {}),
    "ndcg": ("RetrievalNormalizedDCG", {}),
}
"""Short names of metrics, with the class and the arguments that they stand for."""


def _metric(kind: str, arguments: str, shared: Mapping[str, Any]) -> Metric:
    name, preset = _class_name(kind)
    cls: Callable[..., Metric] = getattr(assay.metrics, name)
    allowed = inspect.signature(cls).parameters
    given = _arguments(kind, arguments, cls)
    common = {key: value for key, value in shared.items() if key in allowed and not _is_other_task(key, given)}
    written = f"{kind}:{arguments}" if arguments else kind
    try:
        return cls(**{**common, **preset, **given})
    except TypeError as error:
        got = f"{', '.join(given) or 'no arguments'} ({error})"
        do = f"Write {kind}:argument=value,... with arguments from that list"
        expected = f"arguments among {', '.join(allowed) or 'none'}"
        raise ConfigError(describe(f"metrics: {kind}", got, expected, do)) from error
    except ConfigError as error:
        raise ConfigError(f"metrics: {written}: {error}") from None


def _arguments(kind: str, text: str, cls: Any) -> dict[str, Any]:
    """The arguments of a metric by name.

    Raises:
        ConfigError: one is written twice, has no value, or is none of the metric's.
    """
    allowed = list(inspect.signature(cls).parameters)
    given: dict[str, Any] = {}
    for name, value in (_argument(each, cls, kind) for each in between(text) if each):
        if name in given:
            got, do = f"{name} twice", f"Write {kind}:{name}={given[name]}"
            raise ConfigError(describe(f"metrics: {kind}", got, "each argument once", do))
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, n=1)
            do = f"Write {near[0]}" if near else f"Leave {name} out"
            expected = f"one of {', '.join(allowed)}" if allowed else "none"
            raise ConfigError(describe(f"metrics: {kind}", f"the argument {name!r}", expected, do))
        given[name] = value
    return given


def between(text: str) -> list[str]:
    """The parts of a text between commas outside of brackets, as of `weights=(0.5,0.5),smooth=true`."""
    parts, depth = [""], 0
    for sign in text:
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return parts


_AVERAGES = ("macro", "micro", "weighted")  # which scikit-learn has in names, as in f1_macro
_TASKS = ("num_classes", "num_labels")


def _is_other_task(key: str, fields: Mapping[str, Any]) -> bool:
    """Whether a metric says that its task is another one than the shared argument is for."""
    return key in _TASKS and any(each in fields for each in _TASKS)


def _is_metric(kind: str) -> bool:
    return class_named(kind) is not None


def class_named(kind: str) -> tuple[str, dict[str, Any]] | None:
    """The class that a name such as `rmse` stands for, and the arguments that it implies, or None."""
    with suppress(ConfigError):
        return _class_name(kind)
    return None


def _class_name(kind: str) -> tuple[str, dict[str, Any]]:
    """The class that a name stands for, and the arguments that the name implies."""
    known = {name.lower(): name for name in assay.metrics.__all__ if name not in (*_OF_METRICS, _OF_FUNCTION)}
    wanted = kind.lower().replace("_", "").replace("-", "")
    if wanted == _OF_FUNCTION.lower():
        do = f"Call assay.evaluate in Python, with {_OF_FUNCTION}(function)"
        raise ConfigError(describe("metrics", repr(kind), "a metric that holds no function", do))
    if wanted in SHORT:
        return SHORT[wanted]
    for name in (wanted, f"{wanted}score", f"{wanted}error"):
        if name in known:
            return known[name], {}
    for average in _AVERAGES:
        rest = "".join(kind.lower().replace("-", "_").split(average)).strip("_")
        if average in kind.lower() and (rest in SHORT or rest.replace("_", "") in known):
            got, do = repr(kind), f"Write {rest}:average={average}"
            raise ConfigError(describe("metrics", got, "the name of a metric, with its arguments after a colon", do))
    near = difflib.get_close_matches(wanted, [*known, *SHORT], n=3, cutoff=0.6)
    expected = (
        " or ".join(known.get(each, each) for each in near) or "the name of a metric, such as accuracy, f1 or auroc"
    )
    do = f"Write {near[0]}" if near else "Write metric:argument=value; the command assay metrics lists all metrics"
    raise ConfigError(describe("metrics", repr(kind), expected, do))


def _argument(text: str, cls: Any, kind: str) -> tuple[str, Any]:
    name, equals, value = (part.strip() for part in text.strip(" :").partition("="))
    if not equals or not value or re.search("[:;].*=", value):
        fixed = text.replace(";", ",") if ";" in text else text.replace(":", "," if equals else "=")
        fixed = f"{name}=10" if not value and ":" not in text else fixed
        raise ConfigError(describe(f"metrics: {kind}", repr(text), "argument=value", f"Write {kind}:{fixed}"))
    words = {"true": True, "false": False, "none": None}
    if value in _choices(cls, name):  # sacrebleu has a tokenizer "none"
        return name, value
    if value.lower() in words:
        return name, words[value.lower()]
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def _choices(cls: Any, name: str) -> set[Any]:
    """The strings that an argument of a metric may be, where they are listed."""
    kind = get_type_hints(cls).get(name)
    return {choice for each in (kind, *get_args(kind)) for choice in get_args(each) if isinstance(choice, str)}
