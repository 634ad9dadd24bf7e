"""What `evaluate` is given, as the loop takes it: a function, batches, and metrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from assay.data import Data
from assay.data.options import ModelNeeds
from assay.evaluation.arguments.in_memory import class_label_names, open_in_memory
from assay.evaluation.arguments.named_files import open_named, options_with
from assay.evaluation.arguments.options import EvaluateOptions
from assay.evaluation.arguments.preparation import meter_of
from assay.evaluation.model.data_parallel import unwrapped
from assay.evaluation.model.estimators import DECISIONS, PROBABILITIES, EstimatorModel, classes_of, is_estimator
from assay.evaluation.model.exported_models import as_model
from assay.evaluation.model.forward import float_dtype
from assay.evaluation.model.pipelines import as_pipeline
from assay.metrics.parsing import as_metrics


@dataclass(frozen=True)
class Inputs:
    """A model, data, metrics and options, what a reader of the report must know of the data, and their file."""

    model: Callable[..., Any]
    data: Any
    metrics: Any
    options: EvaluateOptions
    notes: tuple[str, ...] = ()
    file: Path | None = None


def open_inputs(model: Any, data: Any, metrics: Any, options: EvaluateOptions) -> Inputs:
    """Make an estimator a function; paths, arrays and frames a loader; strings metrics; others are returned unchanged.

    Of `DistributedDataParallel` the model inside is evaluated.

    Metrics that are written as strings have `num_classes`, or as many classes as an estimator, a data set of Hugging
    Face or `classes` names, where these are more than two.

    Raises:
        ConfigError: an argument is invalid.
    """
    model = as_pipeline(unwrapped(model))
    labels = classes_of(model) if is_estimator(model) else ()
    names = tuple(options.classes) or tuple(map(str, labels)) or class_label_names(data, options.target)
    defaults: dict[str, Any] = {"num_classes": len(names)} if len(names) > 2 else {}
    if is_estimator(model) and hasattr(model, DECISIONS) and not hasattr(model, PROBABILITIES):
        defaults["logits"] = True
    shared = {} if options.num_classes is None else {"num_classes": options.num_classes}
    metrics = as_metrics(metrics, shared, defaults)
    meter = meter_of(metrics, options.weights is not None)
    options = replace(options, classes=names)
    needs = ModelNeeds(
        dtype=None if is_estimator(model) else float_dtype(model),
        features=tuple(getattr(model, "feature_names_in_", ())) if is_estimator(model) else (),
        classes=labels or names,
        columns=frozenset(meter.columns),
        takes_raw=meter.takes_raw,
        is_estimator=is_estimator(model),
        is_identity=isinstance(model, nn.Identity),
    )
    data, file = open_named(data, options, needs, meter.metrics), None
    notes: tuple[str, ...] = ()
    if isinstance(data, Data):
        file, notes = data.path, data.notes
        data, options = data.data, options_with(data, options, meter.metrics)
    data, options = open_in_memory(data, options, needs)
    if is_estimator(model):
        options = replace(options, device="cpu" if options.device == "auto" else options.device)
        return Inputs(EstimatorModel(model, list(meter.metrics.values())), data, metrics, options, notes, file)
    return Inputs(as_model(model), data, metrics, options, notes, file)
