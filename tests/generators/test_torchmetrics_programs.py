"""Random programs on metrics of TorchMetrics give the same numbers after the changed import.

A program makes a metric or a collection, and then updates, calls, fails, computes, resets, copies, pickles, saves and
loads it in a random order. Each value is compared with that of the same program on TorchMetrics.
"""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torchmetrics as original
from torch import Tensor

from assay.compat import torchmetrics as changed

pytestmark = pytest.mark.slow
PROGRAMS = 60
STEPS = 9


def _scores(rng: torch.Generator, *shape: int) -> Tensor:
    return torch.randperm(4096, generator=rng)[: torch.Size(shape).numel()].reshape(shape).add(1) / 4097


def _binary(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return _scores(rng, rows), torch.randint(0, 2, (rows,), generator=rng)


def _classes(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return _scores(rng, rows, 4).log_softmax(1).exp(), torch.randint(0, 4, (rows,), generator=rng)


def _labels(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return _scores(rng, rows, 3), torch.randint(0, 2, (rows, 3), generator=rng)


def _numbers(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return _scores(rng, rows) + 0.1, _scores(rng, rows) + 0.2


def _queries(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return (*_binary(rng, rows), torch.randint(0, 3, (rows,), generator=rng))


def _values(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    return (_scores(rng, rows),)


def _texts(rng: torch.Generator, rows: int) -> tuple[Any, ...]:
    words = ["a", "b", "cd", "e f", "g"]
    drawn = torch.randint(0, len(words), (2, rows, 6), generator=rng).tolist()
    return tuple([" ".join(words[k] for k in text) for text in side] for side in drawn)


def _named(family: str, name: str, **given: Any) -> Callable[[Any], Any]:
    return lambda library: getattr(getattr(library, family) if family else library, name)(**given)


KINDS: dict[Callable[..., Any], list[Callable[[Any], Any]]] = {
    _binary: [
        *(_named("classification", f"Binary{each}") for each in ("Accuracy", "AUROC", "F1Score", "ConfusionMatrix")),
        *(_named("classification", f"Binary{each}") for each in ("AveragePrecision", "CohenKappa", "StatScores")),
        _named("classification", "BinaryROC", thresholds=7),
        _named("classification", "BinaryCalibrationError", n_bins=5),
        _named("", "Accuracy", task="binary", threshold=0.3),
    ],
    _classes: [
        *(_named("classification", "MulticlassAccuracy", num_classes=4, average=each) for each in ("micro", "macro")),
        _named("classification", "MulticlassAccuracy", num_classes=4, average=None, top_k=2),
        _named("classification", "MulticlassF1Score", num_classes=4, average="weighted", ignore_index=1),
        _named("classification", "MulticlassConfusionMatrix", num_classes=4, normalize="true"),
        _named("classification", "MulticlassAUROC", num_classes=4),
        _named("", "JaccardIndex", task="multiclass", num_classes=4),
    ],
    _labels: [
        *(_named("classification", f"Multilabel{each}", num_labels=3) for each in ("Accuracy", "F1Score", "AUROC")),
        _named("classification", "MultilabelHammingDistance", num_labels=3, average=None),
    ],
    _numbers: [
        *(_named("", each) for each in ("MeanSquaredError", "MeanAbsoluteError", "R2Score", "PearsonCorrCoef")),
        *(
            _named("", each)
            for each in ("SpearmanCorrCoef", "LogCoshError", "MeanSquaredLogError", "RelativeSquaredError")
        ),
        *(_named("regression", each) for each in ("ExplainedVariance", "ConcordanceCorrCoef", "KendallRankCorrCoef")),
        _named("", "MinkowskiDistance", p=3),
        _named("", "MeanSquaredError", squared=False),
        _named("", "TweedieDevianceScore", power=1.5),
    ],
    _queries: [
        *(_named("", f"Retrieval{each}") for each in ("MRR", "MAP", "NormalizedDCG", "RPrecision")),
        _named("retrieval", "RetrievalPrecision", top_k=2),
        _named("retrieval", "RetrievalRecall", top_k=2, empty_target_action="skip"),
        _named("retrieval", "RetrievalHitRate", top_k=1, aggregation="max"),
    ],
    _values: [_named("", each) for each in ("MeanMetric", "SumMetric", "MaxMetric", "MinMetric", "CatMetric")],
    _texts: [
        *(_named("", each) for each in ("WordErrorRate", "CharErrorRate")),
        _named("text", "EditDistance"),
    ],
}
SHARED = (_binary, _classes, _labels, _numbers)  # whose metrics make collections


class Program:
    """A random program, as steps that run on either library."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.batch = self.rng.choice([*KINDS])
        makers = KINDS[self.batch]
        chosen = self.rng.sample(makers, self.rng.randint(2, 3)) if self.batch in SHARED else [self.rng.choice(makers)]
        if self.batch in SHARED and self.rng.random() < 0.4:
            named = {f"metric{k}": each for k, each in enumerate(chosen)}
            groups = self.rng.random() < 0.7
            self.make: Callable[[Any], Any] = lambda library: library.MetricCollection(
                {name: make(library) for name, make in named.items()}, compute_groups=groups, prefix="p_"
            )
        else:
            self.make = chosen[0]
        self.steps = self.rng.choices([*STEPS_OF], [weight for weight, _ in STEPS_OF.values()], k=STEPS)
        self.seed = seed

    def run(self, library: Any) -> list[tuple[str, Any]]:
        """The name of each step and what it gives."""
        data = torch.Generator().manual_seed(self.seed)
        metric, found = self.make(library), []
        metric.update(*self.batch(data, 7))
        for step in [*self.steps, "compute"]:
            rows = int(torch.randint(3, 12, (), generator=data))
            metric, value = STEPS_OF.get(step, (0, _compute))[1](metric, self.batch(data, rows))
            found.append((step, value))
        return found


def _update(metric: Any, batch: Any) -> Any:
    metric.update(*batch)
    return metric, None


def _forward(metric: Any, batch: Any) -> Any:
    return metric, metric(*batch)


def _compute(metric: Any, batch: Any) -> Any:
    return metric, metric.compute()


def _failed(metric: Any, batch: Any) -> Any:
    with pytest.raises(Exception):  # noqa: B017, PT011 -- of whichever class
        metric.update(*(object() for _ in batch))
    return metric, None


def _reset(metric: Any, batch: Any) -> Any:
    metric.reset()
    metric.update(*batch)
    return metric, None


def _pickled(metric: Any, batch: Any) -> Any:
    return pickle.loads(pickle.dumps(metric)), None


def _cloned(metric: Any, batch: Any) -> Any:
    copied = metric.clone()
    metric.update(*batch)  # which leaves the copy as it is
    return copied, None


def _copied(metric: Any, batch: Any) -> Any:
    return copy.deepcopy(metric), None


def _saved(metric: Any, batch: Any) -> Any:
    metric.persistent(True)
    other = metric.clone()
    other.reset()
    other.load_state_dict(metric.state_dict())
    other.update(*batch)
    metric.update(*batch)
    return metric, None


STEPS_OF: dict[str, tuple[int, Callable[[Any, Any], Any]]] = {
    "update": (6, _update),
    "forward": (4, _forward),
    "compute": (3, _compute),
    "failed": (1, _failed),
    "reset": (1, _reset),
    "pickled": (1, _pickled),
    "cloned": (1, _cloned),
    "copied": (1, _copied),
    "saved": (1, _saved),
}


def _same(ours: Any, theirs: Any) -> bool:
    if isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_same(ours[name], theirs[name]) for name in theirs)
    if isinstance(theirs, tuple | list):
        return len(ours) == len(theirs) and all(map(_same, ours, theirs))
    if not isinstance(theirs, Tensor):
        return bool(ours == theirs)
    alike = ours.shape == theirs.shape and ours.dtype == theirs.dtype
    return alike and torch.allclose(ours, theirs, rtol=2e-4, atol=2e-5, equal_nan=True)


@pytest.mark.parametrize("part", range(4))
def test_a_program_gives_the_numbers_of_torchmetrics(part):
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        program = Program(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours, theirs, made = program.run(changed), program.run(original), program.make(original)
        for (step, found), (_, expected) in zip(ours, theirs, strict=True):
            assert _same(found, expected), (seed, made, program.steps, step, found, expected)
