"""``assay evaluate``: a model and data that are named, metrics by name, a report in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.cli.named.columns import Data
from assay.cli.named.datasets import open_data
from assay.cli.named.metrics import open_metrics
from assay.cli.named.models import Model, open_model
from assay.cli.named.options import Options
from assay.cli.named.parts import part, slices
from assay.evaluate import evaluate
from assay.evaluate.ranks import process_group
from assay.metrics.base import Metric
from assay.report import Report


def run(options: Options) -> None:
    """Evaluate, print the report, and write it where a folder was named; of several processes the first one does.

    Args:
        options: what was asked for.

    Raises:
        ConfigError: a model, data or a metric that cannot be found or made.
        StateError: a file that is damaged, or that would run code.
    """
    sys.path.insert(0, os.getcwd())  # a command of its own has only its folder there
    metrics = open_metrics(options.metrics)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    with process_group():  # samplers ask for it
        model = open_model(options.model, factory=options.factory, trust=options.trust, seed=options.seed)
        report = measured(model, open_data(options, model, metrics), metrics, options)
    if os.environ.get("RANK", "0") != "0":
        return
    if options.json:
        print(report.to_json(), end="")
    else:
        report.show()
    if options.out is not None:
        for path in (report.save(options.out / "report.json"), report.to_html(options.out / "report.html")):
            print(path, file=sys.stderr)


def measured(model: Model, data: Data, metrics: Mapping[str, Metric], options: Options) -> Report:
    """The report of a model that was named, with what it and the data are."""
    report = evaluate(model.model, data.data, metrics, **arguments(data, options), title=options.title or model.name)
    about = (f"Model: {_shown(options.model)} ({model.what}).", f"Data: {_shown(options.data)}.", *data.notes)
    return replace(report, notes=(*report.notes, *about))


def arguments(data: Data, options: Options) -> dict[str, Any]:
    """The arguments of `assay.evaluate` that were asked for; those of which nothing was said keep their defaults."""
    given = {
        "device": options.device,
        "inputs": data.inputs if data.inputs is not None else part(options.inputs, several=True),
        "target": data.target if data.target is not None else part(options.target),
        "preds": part(options.preds),
        "weights": part(options.weights),
        "ids": part(options.ids) or data.ids,
        "slices": slices(options.slice),
        "min_slice": options.min_slice,
        "replicates": options.replicates,
        "samples": options.samples,
        "details": options.details,
        "classes": data.classes or None,
        "precision": options.precision or None,
        "compile": options.compile,
        "batch_size": options.batch_size,
        "num_workers": options.workers,
        "shards": options.shards,
        "resume": options.resume,
        "on_error": options.on_error,
        "seed": options.seed,
    }
    found = {name: value for name, value in given.items() if value is not None}
    return found if options.level is None else {**found, "level": options.level or None}  # 0 is for no intervals


def _shown(named: str) -> str:
    return Path(named).name if Path(named).exists() else named
