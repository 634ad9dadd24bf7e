"""Random programs on Ignite's engine give the same numbers after the changed import.

A program attaches a metric to an engine by itself, as a running average, in arithmetic, batchwise or in a group, with
or without an `output_transform`, runs one to three epochs over batches of several sizes, and reads `state.metrics`.
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import ignite.engine
import ignite.metrics
import pytest
import torch
from torch import Tensor

from assay.compat import ignite as changed

pytestmark = pytest.mark.slow
PROGRAMS = 150


def _scores(rng: torch.Generator, *shape: int) -> Tensor:
    return (torch.randperm(4096, generator=rng)[: torch.Size(shape).numel()].reshape(shape) + 1) / 4097


def _binary(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    return torch.randint(0, 2, (rows,), generator=rng), torch.randint(0, 2, (rows,), generator=rng)


def _classes(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    return _scores(rng, rows, 4), torch.randint(0, 4, (rows,), generator=rng)


def _images(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    size = int(torch.randint(1, 4, (), generator=rng))
    return _scores(rng, rows, 4, size, 2), torch.randint(0, 4, (rows, size, 2), generator=rng)


def _ranked(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    target = torch.randint(0, 2, (rows,), generator=rng)
    target[:2] = torch.tensor([0, 1])
    return _scores(rng, rows), target


def _padded(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    length = int(torch.randint(1, 6, (), generator=rng))
    return _scores(rng, rows, length), _scores(rng, rows, length)


def _numbers(rng: torch.Generator, rows: int) -> tuple[Tensor, Tensor]:
    return _scores(rng, rows), _scores(rng, rows)


_AVERAGES = [False, True, "macro", "micro", "weighted"]
NAMES: list[tuple[str, list[dict[str, Any]], list[Any]]] = [
    ("Accuracy", [{}], [_binary, _classes, _images]),
    ("Precision", [{"average": each} for each in _AVERAGES], [_binary, _classes, _images]),
    ("Recall", [{"average": each} for each in _AVERAGES], [_binary, _classes, _images]),
    ("TopKCategoricalAccuracy", [{"k": 1}, {"k": 3}], [_classes]),
    ("ConfusionMatrix", [{"num_classes": 4, "average": each} for each in (None, "samples")], [_classes, _images]),
    *((name, [{}], [_ranked]) for name in ("ROC_AUC", "AveragePrecision")),
    *((f"{name}Error", [{}], [_numbers, _padded]) for name in ("MeanSquared", "MeanAbsolute", "RootMeanSquared")),
    ("R2Score", [{}], [_numbers]),
    ("MedianAbsoluteError", [{}], [_numbers]),
]
SINGLE = ("Accuracy", "TopKCategoricalAccuracy", "ROC_AUC", "MeanSquaredError", "MeanAbsoluteError", "R2Score")
"""Metrics of one number, whose arithmetic and averages make sense with any argument."""


def _made(library: Any, name: str, given: dict[str, Any], **more: Any) -> Any:
    home = library if hasattr(ignite.metrics, name) else library.regression
    return getattr(home, name)(**given, **more)


def run(metrics: Any, engine: Any, seed: int) -> list[dict[str, Any]]:
    """`state.metrics` after each run of the engine of a random program."""
    rng = random.Random(seed)
    name, options, kinds = rng.choice(NAMES)
    given, kind = rng.choice(options), rng.choice(kinds)
    data = torch.Generator().manual_seed(seed)
    batches = [kind(data, rng.randint(3, 9)) for _ in range(rng.randint(1, 5))]
    usage = rng.choice(["plain", "batchwise", "group", "running", "arithmetic", "two"][: 6 if name in SINGLE else 3])
    wrapped = usage not in ("group", "running") and rng.random() < 0.4
    more = {"output_transform": lambda output: (output["p"], output["y"])} if wrapped else {}
    trainer = engine.Engine(lambda _, batch: {"p": batch[0], "y": batch[1]} if wrapped else batch)
    metric = _made(metrics, name, given, **more)
    if usage == "plain":
        metric.attach(trainer, "m")
    elif usage == "batchwise":
        metric.attach(trainer, "m", usage=metrics.BatchWise())
    elif usage == "group":
        metrics.MetricGroup({"a": metric, "b": _made(metrics, name, given, **more)}).attach(trainer, "m")
    elif usage == "running":
        metrics.RunningAverage(metric, alpha=0.7).attach(trainer, "m")
    elif usage == "arithmetic":
        (2 * metric + 1 - metric / 3).attach(trainer, "m")
    else:
        metric.attach(trainer, "m")
        (metric**2).attach(trainer, "square")
    epochs = [rng.randint(1, 3) * (k + 1) for k in range(rng.randint(1, 2))]
    return [dict(trainer.run(batches, max_epochs=most).metrics) for most in sorted(set(epochs))]


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if isinstance(theirs, Tensor):
        return ours.shape == theirs.shape and torch.allclose(ours.double(), theirs.double(), rtol=1e-5, atol=1e-6)
    return isinstance(ours, float) == isinstance(theirs, float) and math.isclose(
        ours, theirs, rel_tol=1e-5, abs_tol=1e-6
    )


@pytest.mark.parametrize("part", range(2))
def test_a_program_gives_the_numbers_of_ignite(part):
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = run(changed.metrics, changed.engine, seed)
            theirs = run(ignite.metrics, ignite.engine, seed)
        assert _same(ours, theirs), (seed, ours, theirs)
