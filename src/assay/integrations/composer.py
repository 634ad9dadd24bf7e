"""Composer: any module with metrics of assay as a `ComposerModel`, and an `Evaluator` of some of them."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from assay.devices.placement import move
from assay.errors import ConfigError, describe
from assay.evaluation.data.batch import Reader, Selector, as_column
from assay.integrations.optional_packages import import_package
from assay.meter import Meter
from assay.metrics.base import Metric

if TYPE_CHECKING:
    AssayModel = Any

Loss = Callable[[Tensor, Any], Tensor]
_PURPOSE = "models and evaluators that its Trainer takes"


def as_composer(
    module: nn.Module,
    metrics: Meter | Mapping[str, Metric],
    loss: Loss | None = None,
    *,
    train_metrics: Meter | Mapping[str, Metric] | None = None,
    inputs: Selector = None,
    target: Selector = None,
    weights: Selector = None,
    preds: Selector = None,
) -> AssayModel:
    """A module with metrics of assay as a `composer.ComposerModel`, for its Trainer.

    Composer moves what the model gives to the CPU on an Apple GPU, and has not always moved the batch with it
    (mosaicml/composer#3094), nor does it move nested outputs today. Here predictions, target and weights meet before
    they are counted, wherever the Trainer has put them. The metrics are no parts of the model: no `.to` moves them, and
    they are not in its checkpoints.

    Args:
        module: what `Trainer` trains or evaluates.
        metrics: by name, or a meter, which is copied empty.
        loss: of predictions and target; needed for training.
        train_metrics: the same for training batches; none by default.
        inputs: what of a batch the module takes: a name, a position, several of them, or a function of the batch.
        target: the same of the target; `(x, y)` and usual names are found without.
        weights: the same, of the samples' weights.
        preds: the same, of the predictions in what the module gives.

    Raises:
        ConfigError: metrics are neither by name nor a meter; later, a batch without the part that was asked for.
        MissingDependencyError: Composer is not installed.
    """
    reader = Reader(module, inputs=inputs, target=target, weights=weights, preds=preds)
    both = {True: _by_name(train_metrics or {}), False: _by_name(metrics)}
    return _model_class()(module, reader, loss, both)


def as_evaluator(label: str, dataloader: Any, names: Iterable[str] | None = None, **options: Any) -> Any:
    """A `composer.Evaluator` that measures with exactly these of the model's metrics.

    Composer takes names for patterns that may match anywhere: `"acc"` finds `"balanced acc"`, too.

    Args:
        label: what Composer calls it. Give evaluators metrics of different names: `state.eval_metric_values` keeps one
            value a name.
        dataloader: the data.
        names: the metrics, as `as_composer` was given them; all by default.
        **options: as `composer.Evaluator` takes them.

    Raises:
        ConfigError: names are one text.
        MissingDependencyError: Composer is not installed.
    """
    if isinstance(names, str):
        raise ConfigError(describe("names", repr(names), "several names", f"Pass [{names!r}]"))
    exact = None if names is None else [f"^{re.escape(name)}$" for name in names]
    return import_package("composer", _PURPOSE).Evaluator(
        label=label, dataloader=dataloader, metric_names=exact, **options
    )


def _by_name(metrics: Meter | Mapping[str, Metric]) -> dict[str, Metric]:
    named: object = metrics.metrics if isinstance(metrics, Meter) else metrics
    if not isinstance(named, Mapping) or not all(isinstance(each, Metric) for each in named.values()):
        got, do = type(metrics).__name__, 'Pass {"accuracy": Accuracy(num_classes=3)}'
        raise ConfigError(describe("metrics", got, "metrics by name, or a meter", do))
    return dict(named)


def _together(*parts: Tensor | None) -> tuple[Tensor | None, ...]:
    """The parts where they are, if that is one place; else on the CPU, where Composer had put some of them."""
    if len({part.device for part in parts if part is not None}) < 2:
        return parts
    moved: tuple[Tensor | None, ...] = move(parts, "cpu")
    return moved


@functools.cache
def _model_class() -> Any:
    """The class, made when it is first needed: its base is Composer's."""
    from assay.integrations.torchmetrics import as_torchmetric

    class AssayModel(import_package("composer", _PURPOSE).ComposerModel):  # type: ignore[misc]
        """A module with metrics of assay; made by `as_composer`.

        Attributes:
            module: the module.
        """

        def __init__(
            self, module: nn.Module, reader: Reader, loss: Loss | None, metrics: Mapping[bool, Mapping[str, Metric]]
        ) -> None:
            super().__init__()
            self.module, self._reader, self._loss, self._metrics = module, reader, loss, metrics

        def forward(self, batch: Any) -> Any:
            """What the module gives for a batch."""
            (positions, keywords), _, _ = self._reader.read(batch)
            return self.module(*positions, **keywords)

        def loss(self, outputs: Any, batch: Any, *args: Any, **kwargs: Any) -> Tensor:
            """The loss of what `forward` gave."""
            if self._loss is None:
                do = "Pass as_composer(module, metrics, loss)"
                raise ConfigError(describe("loss", "none", "a function of predictions and target", do))
            return self._loss(self._reader.preds(outputs), self._reader.read(batch)[1])

        def eval_forward(self, batch: Any, outputs: Any = None) -> Any:
            """What `forward` gives, unless it was given already."""
            return self.forward(batch) if outputs is None else outputs

        def get_metrics(self, is_train: bool = False) -> dict[str, Any]:
            """The metrics by name, empty, each as a `torchmetrics.Metric`."""
            weighted = self._reader.weighted
            return {name: as_torchmetric(each, weighted=weighted) for name, each in self._metrics[is_train].items()}

        def update_metric(self, batch: Any, outputs: Any, metric: Any) -> None:
            """Count a batch."""
            _, *rest = self._reader.read(batch)
            names = ("target", "weights")
            columns = [None if part is None else as_column(part, name) for name, part in zip(names, rest, strict=True)]
            preds, target, weights = _together(self._reader.preds(outputs).detach(), *columns)
            metric.update(preds, target, weights)

    AssayModel.__qualname__ = AssayModel.__name__  # so that pickle finds it by its name in this module
    return AssayModel


def __getattr__(name: str) -> Any:
    if name == "AssayModel":
        return _model_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
