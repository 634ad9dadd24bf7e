"""``assay evaluate``: a model and data that are named, metrics by name, a report in a folder."""

from __future__ import annotations

import hashlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.cli._streams import write_then_show
from assay.cli.loaders.batch_parts import part, slices
from assay.cli.loaders.columns import Columns, Data
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.metrics import open_metrics
from assay.cli.loaders.models import Model, open_model
from assay.cli.loaders.options import Options
from assay.cli.loaders.quantized_models import quantize_model
from assay.cli.loaders.variants import VariantRequest, parse_variants
from assay.errors import AssayWarning
from assay.evaluation import Variant, VariantComparison, compare_variants, evaluate
from assay.evaluation.ranks import process_group
from assay.metrics.base import Metric
from assay.report import Report


def run(options: Options) -> None:
    """Evaluate, write what was found where a folder was named, and print it; of several processes the first one does.

    Args:
        options: what was asked for.

    Raises:
        ConfigError: a model, data or a metric that cannot be found or made.
        StateError: a file that is damaged, or that would run code.
    """
    sys.path.insert(0, os.getcwd())  # a command of its own has only its folder there
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    with process_group(), warnings.catch_warnings():  # samplers ask for the group
        warnings.simplefilter("ignore", AssayWarning)  # the notes of the report say the same
        found = _found(options)
    if os.environ.get("RANK", "0") != "0":
        return
    write_then_show(lambda: _written(found, options.out), lambda: _show(found, options))
    if options.out is None and isinstance(found, Report) and not (options.json or options.verbose):
        print("Tables and plots: add --verbose, or --out FOLDER for a page.", file=sys.stderr)


def _found(options: Options) -> Report | VariantComparison:
    if options.task:
        from assay.cli.language import evaluated

        return evaluated(options)
    metrics = open_metrics(options.metrics, options.shared)
    return _parity(options, metrics) if options.versus else _report(options, metrics)


def _report(options: Options, metrics: Mapping[str, Metric]) -> Report:
    """The report of the model that was named, with what it and the data are."""
    model = _model(options)
    data = _opened(options, model, metrics)
    report = evaluate(model.model, data.data, metrics, **arguments(data, options), title=options.title or model.name)
    return _told(report, model, data, options)


def _parity(options: Options, metrics: Mapping[str, Metric]) -> VariantComparison:
    """Each form of the model on the same samples."""
    asked = parse_variants(options)
    models = _models(list(asked.values()))
    datas = _datas(asked, models, metrics)
    given = {
        name: Variant(model.model, data.data, arguments(data, each.options))
        for (name, each), model, data in zip(asked.items(), models, datas, strict=True)
    }
    title = options.title or "Parity"
    found = compare_variants(
        given, None, metrics, confidence_level=options.level or 0.95, seed=options.seed, title=title
    )
    parts = zip(found.reports, models, datas, asked.values(), strict=True)
    reports = tuple(_told(report, model, data, each.options) for report, model, data, each in parts)
    return replace(found, reports=reports)


def _models(asked: Sequence[VariantRequest]) -> list[Model]:
    """The model of each form; one that differs in how it is run only is opened once."""
    opened: dict[tuple[str, str, str], Model] = {}
    for each in asked:
        key = each.options.model, each.options.factory, each.scheme
        if key not in opened:
            model = _model(each.options)
            opened[key] = quantize_model(model, each.scheme, each.options.device) if each.scheme else model
    return [opened[each.options.model, each.options.factory, each.scheme] for each in asked]


def _datas(asked: Mapping[str, VariantRequest], models: Sequence[Model], metrics: Mapping[str, Metric]) -> list[Data]:
    """The same samples as each form takes them. What a function makes may be random, so all have that of the first."""
    opened: dict[Any, Data] = {}
    for each, model in zip(asked.values(), models, strict=True):
        kind = model.dtype, model.folder, model.classes
        first = next(iter(opened.values()), None)
        if kind not in opened:
            opened[kind] = first if first is not None and first.is_made else _opened(each.options, model, metrics)
    return [opened[model.dtype, model.folder, model.classes] for model in models]


def _opened(options: Options, model: Model, metrics: Mapping[str, Metric]) -> Data:
    """The data, and, where a run may resume, the digest of the file or folder that they are in."""
    data = open_data(options, model, metrics)
    dataset = getattr(data.data, "dataset", None)
    if options.resume is not None and isinstance(dataset, Columns):
        dataset.content_digest = _digest(Path(options.data))
    return data


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of the names and sizes of the files in a folder."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    found = sorted(
        (each.relative_to(path).as_posix(), each.stat().st_size) for each in path.rglob("*") if each.is_file()
    )
    return hashlib.sha256(repr(found).encode(errors="surrogatepass")).hexdigest()


def _model(options: Options) -> Model:
    return open_model(options.model, factory=options.factory, trust=options.trust, seed=options.seed)


def _told(report: Report, model: Model, data: Data, options: Options) -> Report:
    about = (f"Model: {_shown(options.model)} ({model.what}).", f"Data: {_shown(options.data)}.", *data.notes)
    return replace(report, notes=(*report.notes, *about))


def _show(found: Report | VariantComparison, options: Options) -> None:
    if options.json:
        print((found if isinstance(found, Report) else found.comparison).to_json(), end="")
    elif isinstance(found, Report):
        found.show(verbose=options.verbose)
    else:
        found.show()


def _written(found: Report | VariantComparison, out: Path | None) -> list[Path]:
    if out is None:
        return []
    if isinstance(found, VariantComparison):
        return found.save(out)
    return [found.save(out / "report.json"), found.to_html(out / "report.html")]


def arguments(data: Data, options: Options) -> dict[str, Any]:
    """The arguments of `assay.evaluate` that were asked for; those of which nothing was said keep their defaults."""
    given = {
        "device": options.device,
        "inputs": part(options.inputs, several=True) if _is_said(options.inputs, data.inputs) else data.inputs,
        "target": part(options.target) if _is_said(options.target, data.target) else data.target,
        "preds": part(options.preds),
        "weights": part(options.weights),
        "ids": part(options.ids) or data.ids,
        "slices": slices(options.slice, data.data),
        "min_slice_size": options.min_slice,
        "n_resamples": options.replicates,
        "keep_samples": options.samples,
        "diagnostics": options.details,
        "classes": data.classes or None,
        "precision": options.precision or None,
        "compile": options.compile,
        "batch_size": options.batch_size,
        "num_workers": options.workers,
        "sharded": options.shards,
        "resume": options.resume,
        "run_id": options.run_id,
        "checkpoint_every": options.checkpoint_s,
        "rank_timeout_s": options.rank_timeout_s,
        "on_error": options.on_error,
        "seed": options.seed,
    }
    found = {name: value for name, value in given.items() if value is not None}
    return (
        found if options.level is None else {**found, "confidence_level": options.level or None}
    )  # 0 is for no intervals


def _is_said(written: str, known: Any) -> bool:
    """Whether a part is what was written: a function, or of data that do not know their own parts."""
    return ":" in written or known is None


def _shown(named: str) -> str:
    return Path(named).name if Path(named).exists() else named
