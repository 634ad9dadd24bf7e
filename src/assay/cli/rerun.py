"""``assay verify --model``: what the model says now, measured as the report says that it was."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from assay.cli.evaluate import arguments
from assay.cli.loaders.datasets import open_data
from assay.cli.loaders.models import model_of
from assay.cli.options.measurement import EvaluateCommand
from assay.cli.options.reports import VerifyCommand
from assay.cli.recorded import EVALUATE, NAMED_BY_THE_CALLER
from assay.errors import ConfigError, describe
from assay.evaluation import evaluate
from assay.evaluation.results.provenance import file_digests, model_digest
from assay.report import Report
from assay.verify.recount import metrics_of, verify_by_report
from assay.verify.result import VerificationCheck

_OF_CODE = ("inputs", "target", "preds", "weights", "ids", "column", "cluster", "slice")


def rerun(report: Report, options: VerifyCommand) -> list[VerificationCheck]:
    """What the model says now: it is measured as the report says, with the model and the data of the command line."""
    if options.data is None:
        do = "Add --data, the data that it was measured on"
        raise ConfigError(describe("--model", "no data", "--data", do))
    metrics, command, recorded = metrics_of(report), _command(report, options), _recorded(report)
    model = model_of(command)
    data = open_data(command, model, metrics)
    keywords = arguments(data, command) | recorded | {"title": report.title, "progress": False}
    counts = report.sections[0].counts
    assert counts is not None, "metrics_of refuses such a report"
    keywords |= counts.interval_options
    digest = model_digest(model.model)
    again = evaluate(model.model, data, metrics, **keywords)
    return verify_by_report(report, again, "rerun", file_digests(options.data), digest)


def _options_in(report: Report) -> Mapping[str, Any]:
    if report.origin is None or report.origin.call not in ("evaluate", EVALUATE):
        do = "Give --data with its predictions, without --model"
        raise ConfigError(describe("--model", "a report that no model made", "one of assay evaluate", do))
    return report.origin.call_options()


def _command(report: Report, options: VerifyCommand) -> EvaluateCommand:
    """How the model was measured; what is run is named by the caller alone, and never by the report."""
    recorded = dict(_options_in(report)) if report.origin is not None and report.origin.call == EVALUATE else {}
    fields = {each.name for each in dataclasses.fields(EvaluateCommand)} - set(NAMED_BY_THE_CALLER)
    if unknown := sorted(recorded.keys() - fields):
        do = "Use the version of assay that wrote it"
        raise ConfigError(describe("report.origin.options", ", ".join(unknown), "options of assay evaluate", do))
    _check_names_no_code(recorded, options)
    plain = {name: tuple(value) if isinstance(value, list) else value for name, value in recorded.items()}
    chosen = {name: getattr(options, name) for name in ("model", "model_factory", "allow_code", "device")}
    return EvaluateCommand(**{**plain, **chosen, "data": str(options.data), "metrics": ()})


def _recorded(report: Report) -> dict[str, Any]:
    """The options of a call in Python, which `evaluate` takes."""
    if report.origin is None or report.origin.call == EVALUATE:
        return {}
    found = dict(_options_in(report))
    return {name: value for name, value in found.items() if name not in ("device", "num_classes", "classes")}


def _check_names_no_code(recorded: Mapping[str, Any], options: VerifyCommand) -> None:
    named = [name for name in _OF_CODE if ":" in json.dumps(recorded.get(name, ""))]
    if named and not options.allow_code:
        do = "Add --allow-code if you trust the report"
        raise ConfigError(describe("report.origin.options", f"functions in {', '.join(named)}", "names of parts", do))
