"""``assay evaluate``: a model and data that are named, metrics by name, a report in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay._remote import without_password
from assay.cli.loaders.batch_parts import parse_part, parse_parts, parse_slices
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import model_of
from assay.cli.loaders.named_model import Model
from assay.cli.loaders.quantized_models import quantize_model
from assay.cli.loaders.variants import VariantRequest, parse_variants
from assay.cli.measurement import arguments_of, measure_and_show
from assay.cli.options.measurement import EvaluateCommand
from assay.cli.recorded import EVALUATE, recorded_options
from assay.data import Data
from assay.evaluation import Variant, VariantComparison, compare_variants, evaluate
from assay.metrics.base import Metric
from assay.metrics.parsing import open_metrics
from assay.report import Report


def run(options: EvaluateCommand) -> None:
    """Evaluate, write the report where a folder was named, and print it; of several processes the first one does."""
    measure_and_show(lambda: _measure(options), options)


def _measure(options: EvaluateCommand) -> Report | VariantComparison:
    metrics = open_metrics(options.metrics, options.shared)
    return _parity(options, metrics) if options.variant else _report(options, metrics)


def _report(options: EvaluateCommand, metrics: Mapping[str, Metric]) -> Report:
    """The report of the model that was named, with what it and the data are."""
    model = model_of(options)
    data = open_data(options, model, metrics)
    keywords = arguments(data, options) | {"title": options.title or model.name}
    report = evaluate(model.model, data, metrics, **keywords)
    if report.origin is not None:
        origin = replace(report.origin, call=EVALUATE, options=recorded_options(options))
        report = replace(report, origin=origin)
    return _with_notes(report, model, options)


def _parity(options: EvaluateCommand, metrics: Mapping[str, Metric]) -> VariantComparison:
    """Each variant of the model on the same samples."""
    requests = parse_variants(options)
    models = _models(list(requests.values()))
    datas = _datas(requests, models, metrics)
    variants = {
        name: Variant(model.model, data, arguments(data, each.options))
        for (name, each), model, data in zip(requests.items(), models, datas, strict=True)
    }
    title = options.title or "Parity"
    result = compare_variants(
        variants, None, metrics, confidence_level=options.confidence_level or 0.95, seed=options.seed, title=title
    )
    parts = zip(result.reports, models, requests.values(), strict=True)
    reports = tuple(_with_notes(report, model, each.options) for report, model, each in parts)
    return replace(result, reports=reports)


def _models(requests: Sequence[VariantRequest]) -> list[Model]:
    """The model of each variant; one that differs in how it is run only is opened once."""
    opened: dict[tuple[str, str, str], Model] = {}
    for each in requests:
        key = each.options.model, each.options.model_factory, each.scheme
        if key not in opened:
            model = model_of(each.options)
            opened[key] = quantize_model(model, each.scheme, each.options.device) if each.scheme else model
    return [opened[each.options.model, each.options.model_factory, each.scheme] for each in requests]


def _datas(
    requests: Mapping[str, VariantRequest], models: Sequence[Model], metrics: Mapping[str, Metric]
) -> list[Data]:
    """The same samples as each variant takes them; all have the data of the first where a function makes them."""
    opened: dict[Any, Data] = {}
    for each, model in zip(requests.values(), models, strict=True):
        kind = model.dtype, model.folder, model.classes
        first = next(iter(opened.values()), None)
        if kind not in opened:
            opened[kind] = (
                first if first is not None and first.path is None else open_data(each.options, model, metrics)
            )
    return [opened[model.dtype, model.folder, model.classes] for model in models]


def _with_notes(report: Report, model: Model, options: EvaluateCommand) -> Report:
    about = f"Model: {_short_name(options.model)} ({model.what}).", f"Data: {_short_name(options.data)}."
    return replace(report, notes=(*report.notes, *about))


def arguments(data: Data, options: EvaluateCommand) -> dict[str, Any]:
    """The arguments of `assay.evaluate`: options as they are, and the parts of a batch that they name."""
    return arguments_of(
        evaluate,
        options,
        inputs=parse_parts(options.inputs),
        target=parse_part(options.target),
        preds=parse_part(options.preds),
        weights=parse_part(options.weights),
        ids=parse_part(options.ids),
        cluster=parse_part(options.cluster),
        columns=data.columns,
        slices=parse_slices(options.slice, data.data),
        num_classes=None,  # the metrics have it
    )


def _short_name(named: str) -> str:
    return Path(named).name if Path(named).exists() else without_password(named)
