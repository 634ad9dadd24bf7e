"""Pipelines whose stages fail, and pipelines whose batches have other shapes."""

from __future__ import annotations

import functools
import time

import pytest
import torch
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

from assay import Accuracy, evaluate
from assay.errors import ConfigError
from assay.evaluation.model.pipelines import PipelineModel
from ranks import processes

CLASSES = 3
LONGEST_S = 60.0
"""How long a process that failed lives on, if others wait for it."""


def network():
    torch.manual_seed(0)
    return [nn.Linear(4, 8), nn.ReLU(), nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, CLASSES))]


def batches(tokens=(1,) * 6):
    """Batches of eight samples with so many rows each, whose mean has the network's own label; every fifth is wrong."""
    generator = torch.Generator().manual_seed(1)
    found = []
    for count in tokens:
        x = torch.randn(8, count, 4, generator=generator)
        y = Mean(nn.Sequential(*network()))(x).argmax(1)
        y[::5] = (y[::5] + 1) % CLASSES
        found.append((x, y))
    return found


class Mean(nn.Module):
    """The mean over the rows of a sample of what a module gives for each."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).mean(1)


class Fails(nn.Module):
    """Raises, or sleeps, in the middle of the third batch."""

    def __init__(self, inner, seconds):
        super().__init__()
        self.inner, self.seconds, self.left = inner, seconds, 6

    def forward(self, x):
        self.left -= 1
        if not self.left and not self.seconds:
            raise ZeroDivisionError("by design")
        if not self.left:
            time.sleep(self.seconds)
        return self.inner(x)


def schedule(rank, size, bad=None, seconds=0.0):
    layers = network()
    parts = [nn.Sequential(*layers[: 3 - size + 1]), *layers[3 - size + 1 :]]
    part = Mean(parts[rank]) if rank == size - 1 else parts[rank]
    part = Fails(part, seconds) if rank == bad else part
    return ScheduleGPipe(PipelineStage(part, rank, size, torch.device("cpu")), 2)


def evaluated(model, data, **more):
    how = {"device": "cpu", "batch_size": None, "sharded": False, "rank_timeout_s": 2.0, "progress": False, **more}
    try:
        (value,) = evaluate(model, data, Accuracy(num_classes=CLASSES), **how).sections[0].values
        return value.value
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def failing(folder, bad, rank, size):
    """The error of each process; of the one that failed also whether the others ended while it lived."""
    text = evaluated(schedule(rank, size, bad), batches(), on_error="skip")
    if rank != bad:
        (folder / f"ended {rank}").touch()
        return text, True
    until = time.monotonic() + LONGEST_S
    while len(list(folder.glob("ended *"))) < size - 1 and time.monotonic() < until:
        time.sleep(0.05)
    return text, len(list(folder.glob("ended *"))) == size - 1


class ScheduleOfTorch26:
    """What `ScheduleGPipe` has in torch 2.6."""

    _stage, _n_microbatches, _stage_initialized = object(), 2, False


def test_a_schedule_that_cannot_run_without_gradients_is_refused():
    with pytest.raises(ConfigError, match=r"ScheduleOfTorch26 without eval.*Use torch 2\.13"):
        PipelineModel(ScheduleOfTorch26())


needs_eval = pytest.mark.skipif(not hasattr(ScheduleGPipe, "eval"), reason="pipelines of this release have no eval")


@needs_eval
@pytest.mark.parametrize(
    ("size", "bad"),
    [(2, 1), *(pytest.param(*each, marks=pytest.mark.exhaustive) for each in ((2, 0), (3, 0), (3, 1), (3, 2)))],
)
def test_stages_that_wait_for_one_that_failed_but_lives_end_with_its_error_and_batch(tmp_path, size, bad):
    found = processes(functools.partial(failing, tmp_path, bad), size, tmp_path)
    texts = [text for text, _ in found]
    assert all(ended for _, ended in found), texts
    own = texts.pop(bad)
    assert own.startswith("BatchError: batch with number 2 of the stream: got ZeroDivisionError while predicting: by")
    assert all(
        text.startswith(f"RankError: ranks: got a failure of rank {bad} (BatchError: batch with number 2 of")
        for text in texts
    )


def asleep(rank, size):
    return evaluated(schedule(rank, size, bad=1, seconds=12.0), batches())


@needs_eval
@pytest.mark.slow
def test_a_stage_that_stands_still_is_named_with_its_batch(tmp_path):
    first, second, third = processes(asleep, 3, tmp_path)
    assert "got batch 2 (predicting), to which other ranks did not come; ranks 1, 2 are the last, in batch 2" in first
    assert "got batch 2 (predicting), to which other ranks did not come; ranks 0, 1 are the last, in batch 2" in third
    assert second.startswith("RankError: ranks: got ")


def of_shapes(tokens, rank, size):
    return evaluated(schedule(rank, size), batches(tokens))


@needs_eval
def test_batches_of_other_lengths_have_the_value_of_one_process(tmp_path):
    tokens = (3, 5, 5, 2)
    expected = evaluated(Mean(nn.Sequential(*network())), batches(tokens))
    assert isinstance(expected, float)
    assert processes(functools.partial(of_shapes, tokens), 2, tmp_path) == [expected] * 2
