"""Perplexity of language models: fully sharded, in a pipeline, with logits sharded over words or tokens."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel

from benchmarks.meshes.configuration import Configuration, measured, of_words
from benchmarks.meshes.models import Attentive, Language, language_parallel, mesh, right_attentive_perplexity


def pipeline_of_words() -> ScheduleGPipe:
    model, place = Language(), dist.get_rank()
    layers = nn.Sequential(model.words, model.inner) if not place else nn.Sequential(nn.Tanh(), model.head)
    return ScheduleGPipe(PipelineStage(layers, place, 2, torch.device("cpu")), 2)


class SequenceParallel(nn.Module):
    """Each process predicts the tokens of its part of each sequence: logits are a `DTensor` sharded over tokens."""

    def __init__(self, on: Any) -> None:
        super().__init__()
        self.inner, self.on = Language(), on

    def forward(self, ids):
        size, place = self.on.size(), self.on.get_local_rank()
        local = self.inner(ids.chunk(size, dim=1)[place])
        return DTensor.from_local(local, self.on, [Shard(1)], run_check=False)


class ContextParallel(SequenceParallel):
    """The same with attention: each process gathers the keys of all tokens."""

    def __init__(self, on: Any) -> None:
        super().__init__(on)
        self.inner = Attentive()

    def forward(self, ids):
        local = ids.chunk(self.on.size(), dim=1)[self.on.get_local_rank()]
        return DTensor.from_local(self.inner(local, self.on.get_group()), self.on, [Shard(1)], run_check=False)


class PlainSlices(SequenceParallel):
    """The same, as plain tensors of this process's tokens."""

    def forward(self, ids):
        return super().forward(ids).to_local()


def words_parallel(on: Any) -> nn.Module:
    """Logits are a `DTensor` of which each process has some words."""
    plan = {"inner": ColwiseParallel(output_layouts=Replicate()), "head": ColwiseParallel(use_local_output=False)}
    return language_parallel(on, plan)


def sharded_words(on: Any = None) -> nn.Module:
    model = Language()
    for layer in (model.words, model.inner, model.head):
        fully_shard(layer, mesh=on)
    return fully_shard(model, mesh=on)


def _words_on_two() -> nn.Module:
    on = mesh((2, 2), "fsdp cp")
    model = SequenceParallel(on["cp"])
    model.inner = sharded_words(on["fsdp"])
    return model


CASES = (
    of_words("whole model", 2, Language),
    of_words("FSDP2", 2, sharded_words),
    of_words("pipeline", 2, pipeline_of_words),
    of_words("logits sharded over words", 2, lambda: words_parallel(mesh((2,), "tp"))),
    of_words("logits sharded over tokens", 2, lambda: SequenceParallel(mesh((2,), "cp")), mesh="cp=2"),
    *(
        Configuration(
            f"perplexity, attention, {name}",
            2,
            lambda rank, folder, make=make, how=how: measured(make(), **how),
            right_attentive_perplexity(),
        )
        for name, make, how in (
            ("whole model", Attentive, {}),
            ("context parallel by hand", lambda: ContextParallel(mesh((2,), "cp")), {"mesh": "cp=2"}),
        )
    ),
    Configuration(
        "perplexity, plain logits of a part of the tokens",
        2,
        lambda rank, folder: measured(PlainSlices(mesh((2,), "cp")), mesh="cp=2"),
        "some tokens on each process a DTensor with Shard(1)",
    ),
    of_words("logits sharded over words", 3, lambda: words_parallel(mesh((3,), "tp"))),
    of_words("FSDP2 × tokens 2 × 2", 4, _words_on_two, mesh="fsdp=2,cp=2"),
)
