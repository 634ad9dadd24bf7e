"""Configurations: a model on some processes, the samples it is given, and what is right."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import signal
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import ShardingStrategy, fully_shard
from torch.distributed.pipelining import (
    PipelineStage,
    Schedule1F1B,
    ScheduleDualPipeV,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from assay import Accuracy, evaluate
from assay.evaluation import evaluate_model
from assay.evaluation.errors import RankError
from assay.language import perplexity
from assay.report import Report
from benchmarks.meshes.groups import Case
from benchmarks.meshes.models import (
    BATCH,
    CLASSES,
    WINDOW,
    Attentive,
    Broken,
    Experts,
    HandWritten,
    Language,
    Stream,
    fsdp1,
    fully_sharded,
    language_parallel,
    mesh,
    network,
    right,
    right_attentive_perplexity,
    right_perplexity,
    samples,
    tensor_parallel,
    tokens,
    vocabulary_parallel,
    wrapped_layers,
)
from benchmarks.meshes.others import OTHERS

TIMEOUT_S = 3.0
Give = Callable[[int, Path], Any]


@dataclass(frozen=True)
class Configuration:
    """One row of the table.

    Attributes:
        name: which model on which processes, and how many samples in which batches.
        size: how many processes there are.
        act: what assay gives on a process.
        right: the value; or a part of the error that says why there is none.
        dies: the processes that do not come to the end.
        after: the configuration that it resumes.
        model: makes the model, for other libraries; None where they are not run.
        count: of the samples, for other libraries.
        batch: of the samples, for other libraries.
    """

    name: str
    size: int
    act: Give
    right: float | str
    dies: tuple[int, ...] = ()
    after: str = ""
    model: Callable[[], Any] | None = None
    count: int = 0
    batch: int = BATCH


def evaluated(model: Any, data: Any, **options: Any) -> Any:
    """The value, and a digest of all that the report says of the samples."""
    how = {"device": "cpu", "batch_size": BATCH, "rank_timeout_s": TIMEOUT_S, "n_resamples": 25, **options}
    return told(lambda: evaluate(model, data, Accuracy(num_classes=CLASSES), **how))


def measured(model: Any, **options: Any) -> Any:
    """The perplexity of the text."""
    how = {"window": WINDOW, "stride": WINDOW, "rank_timeout_s": TIMEOUT_S, "device": "cpu", "batch_size": 4, **options}
    return told(lambda: perplexity(model, tokens(), **how))


def told(act: Callable[[], Report]) -> Any:
    report = act()
    (section,) = report.sections
    tables = [each for each in section.tables if each.name not in ("Every sample once", "Decisions", "Run")]
    text = Report("", [dataclasses.replace(section, tables=tables)], created="", environment={}).to_json()
    return [section.values[0].value, hashlib.sha256(text.encode()).hexdigest()[:8], report.notes[0]]


def simple(name: str, size: int, model: Callable[[], Any], count: int, batch: int = BATCH, **options: Any):
    """A configuration of one model and a data set with indices."""

    def act(rank: int, folder: Path) -> Any:
        return evaluated(model(), samples(count), batch_size=batch, **options)

    return Configuration(f"{name}, {count}/{batch}", size, act, right(count), model=model, count=count, batch=batch)


def of_words(name: str, size: int, model: Callable[[], Any], **options: Any):
    """A configuration of a language model."""
    return Configuration(
        f"perplexity, {name}", size, lambda rank, folder: measured(model(), **options), right_perplexity()
    )


def replica() -> nn.Module:
    return nn.parallel.DistributedDataParallel(network())


@functools.cache
def _transformers_folder(folder: Path) -> str:
    """A small Llama on the disk, the same on all processes."""
    import transformers

    place = folder / "llama"
    if dist.get_rank() == 0 and not (place / "config.json").exists():
        sizes = {"vocab_size": CLASSES, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
        torch.manual_seed(5)
        config = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)
        transformers.LlamaForCausalLM(config).save_pretrained(place)
    dist.barrier()
    return str(place)


class LastLogits(nn.Module):
    """The logits of the last token."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).logits[:, -1]


def llama(folder: Path, **options: Any) -> nn.Module:
    from transformers import LlamaForCausalLM

    return LlamaForCausalLM.from_pretrained(_transformers_folder(folder), **options).eval()


def llama_samples(folder: Path, count: int):
    x = torch.randint(CLASSES, (count, 6), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        y = LastLogits(llama(folder))(x).argmax(1)
    y[::5] = (y[::5] + 1) % CLASSES
    return TensorDataset(x, y)


def of_transformers(name: str, size: int, count: int, **sizes: int):
    """A Llama that transformers has shared among processes by its own plan."""

    def act(rank: int, folder: Path) -> Any:
        from transformers.distributed import DistributedConfig

        options = {"distributed_config": DistributedConfig(**sizes)} if sizes else {"tp_plan": "auto"}
        return evaluated(LastLogits(llama(folder, **options)), llama_samples(folder, count))

    return Configuration(f"transformers, {name}, {count}/{BATCH}", size, act, right(count))


def streams(name: str, model: Callable[[], Any], *parts: tuple[int, int], sharded: bool = True):
    """Each process has some batches of a stream; without ids there is no interval."""

    def act(rank: int, folder: Path) -> Any:
        return evaluated(model(), Stream(*parts[rank]), batch_size=None, sharded=sharded)

    sizes = ", ".join(str(stop - start) for start, stop in parts)
    return Configuration(f"{name}, streams of {sizes} batches", len(parts), act, right(101))


def broken(
    name: str,
    size: int,
    model: Callable[[], Any],
    act: Callable[[Any, Any], Any],
    right_: Any,
    at: int = 20,
    **more: Any,
):
    """Something happens when a sample is loaded."""

    def run(rank: int, folder: Path) -> Any:
        return evaluated(model(), Broken(at, act), on_error="skip")

    return Configuration(name, size, run, right_, **more)


def fails(x, y):
    raise ZeroDivisionError("by design")


def is_other(x, y):
    return x + dist.get_rank() / 10, y


def killed(rank: int):
    return lambda x, y: os.kill(os.getpid(), signal.SIGKILL) if dist.get_rank() == rank else (x, y)


def asleep(rank: int):
    def act(x, y):
        if dist.get_rank() == rank:
            time.sleep(4 * TIMEOUT_S)
        return x, y

    return act


class KilledInside(nn.Module):
    """One process ends between two layers."""

    def __init__(self, inner: nn.Module, rank: int, batches: int, at_end: bool = False) -> None:
        super().__init__()
        self.inner, self.rank, self.batches = inner, rank, batches

    def forward(self, x):
        hidden = self.inner[1](self.inner[0](x))
        self.batches -= 1
        if not self.batches and dist.get_rank() == self.rank:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.inner[2](hidden)


def killed_in_report(rank: int, folder: Path) -> Any:
    ends = mock.Mock(side_effect=lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    with mock.patch.object(evaluate_model, "build_report", ends) if rank == 1 else nullcontext():
        return evaluated(fully_sharded(), samples(64))


class Left:
    """How many batches are left is no part of what a model is."""

    def __init__(self, left: int = 0) -> None:
        self.left = left

    def __reduce__(self):
        return Left, ()


class Stops(nn.Module):
    """Is interrupted after some batches."""

    def __init__(self, inner: nn.Module, batches: int) -> None:
        super().__init__()
        self.inner, self.batches = inner, Left(batches)

    def forward(self, x):
        if not self.batches.left:
            raise KeyboardInterrupt
        self.batches.left -= 1
        return self.inner(x)


def resumed(name: str, first: int, second: int, model: Callable[[int], Any], batches: int = 2):
    """An interrupted run, and one with another number of processes that goes on from there."""

    def run(rank: int, folder: Path, left: int, size: int) -> Any:
        try:
            place = str(folder / name.replace(" ", "_"))
            return evaluated(Stops(model(size), left), samples(101), resume=place, checkpoint_every=99.0)
        except KeyboardInterrupt:
            return "interrupted"

    stopped = f"{name} on {first} processes, interrupted"
    return (
        Configuration(stopped, first, lambda rank, folder: run(rank, folder, batches, first), "interrupted"),
        Configuration(
            f"{name}, the same on {second}",
            second,
            lambda rank, folder: run(rank, folder, 99, second),
            right(101),
            after=stopped,
        ),
    )


def groups_of(shape: tuple[int, int]) -> tuple[dist.ProcessGroup, dist.ProcessGroup]:
    """Of a grid of processes the group along its columns, which have different samples, and along its rows."""
    grid = mesh(shape, "columns rows")
    return grid.get_group("columns"), grid.get_group("rows")


def said(name: str, shape: tuple[int, int], how: Callable[[Any], dict[str, Any]], expected: Any = None):
    def act(rank: int, folder: Path) -> Any:
        columns, rows = groups_of(shape)
        return evaluated(HandWritten(rows), samples(101), **how(columns))

    value = right(101) if expected is None else expected
    return Configuration(f"written by hand, {name}, 101/{BATCH}", shape[0] * shape[1], act, value)


def pipeline(on: Any = None, batch: int = BATCH, microbatches: int = 2) -> ScheduleGPipe:
    """The network in as many stages as there are processes, two or three."""
    group = None if on is None else on.get_group()
    place, size = dist.get_rank(group), dist.get_world_size(group)
    layers = list(network())
    parts = [layers[:2], layers[2:]] if size == 2 else [layers[:1], layers[1:2], layers[2:]]
    stage = PipelineStage(nn.Sequential(*parts[place]), place, size, torch.device("cpu"), group=group)
    return ScheduleGPipe(stage, microbatches)


def stages(kind: Any, microbatches: int = 2, *, is_folded: bool = False, loss: Any = None) -> Any:
    """The network in four stages on two processes, of which each has two; folded, the first process has the ends."""
    place, layers = dist.get_rank(), [*network(), nn.Identity()]
    own = (place, 3 - place if is_folded else place + 2)
    parts = [PipelineStage(layers[k], k, 4, torch.device("cpu")) for k in own]
    return kind(parts, microbatches, loss_fn=loss)


def with_a_loss() -> ScheduleGPipe:
    """A pipeline that was made for training."""
    place, layers = dist.get_rank(), list(network())
    stage = PipelineStage(nn.Sequential(*layers[2 * place : 2 * place + 2]), place, 2, torch.device("cpu"))
    return Schedule1F1B(stage, 2, loss_fn=nn.CrossEntropyLoss())


def resumed_pipeline(first: bool) -> Configuration:
    """An interrupted run of a pipeline, and one that goes on from there."""

    def run(rank: int, folder: Path) -> Any:
        left = (6, 4)[rank] if first else 26  # from the start it takes 27 calls, so that it is no run from the start
        layers = list(network())
        part = nn.Sequential(*layers[:2] if not rank else layers[2:])
        schedule = ScheduleGPipe(PipelineStage(Stops(part, left), rank, 2, torch.device("cpu")), 2)
        try:
            return evaluated(schedule, samples(101), resume=str(folder / "pipeline"), checkpoint_every=0.0)
        except (KeyboardInterrupt, RankError):  # the first stage may wait for the second one
            return "interrupted"

    names = ("pipeline on 2 processes, interrupted", "pipeline, the same")
    return Configuration(
        names[not first], 2, run, "interrupted" if first else right(101), after="" if first else names[0]
    )


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


def sharded_and_parallel(shape: tuple[int, ...], names: str, over: str, along: str) -> nn.Module:
    on = mesh(shape, names)
    return fully_sharded(on[tuple(over.split())] if " " in over else on[over], tensor_parallel(on[along]))


def parallel_on_two() -> nn.Module:
    return tensor_parallel(mesh((2,), "tp"))


def _folded(kind: Any, microbatches: int, rank: int, folder: Path) -> Any:
    return evaluated(stages(kind, microbatches, is_folded=True, loss=nn.CrossEntropyLoss()), samples(101))


TWO = (
    simple("whole model", 2, network, 64),
    simple("whole model", 2, network, 101),
    simple("DistributedDataParallel", 2, replica, 101),
    simple("FSDP1, one unit", 2, fsdp1, 5, 2),
    simple("FSDP1, a unit a layer", 2, wrapped_layers, 5, 2),
    simple("FSDP1, use_orig_params", 2, lambda: wrapped_layers(use_orig_params=True), 101),
    simple("FSDP2", 2, fully_sharded, 64),
    simple("FSDP2", 2, fully_sharded, 5, 2),
    simple("FSDP2", 2, fully_sharded, 101),
    simple("TP", 2, parallel_on_two, 64),
    simple("TP", 2, parallel_on_two, 101),
    simple("TP, logits sharded over classes", 2, lambda: vocabulary_parallel(mesh((2,), "tp")), 101),
    Configuration(
        "TP, padded sampler, 101/8",
        2,
        lambda rank, folder: evaluated(
            tensor_parallel(mesh((2,), "tp")),
            DataLoader(samples(101), BATCH, sampler=DistributedSampler(samples(101))),
        ),
        right(101),
    ),
    streams("FSDP2", fully_sharded, (0, 9), (9, 13)),
    streams("FSDP2", fully_sharded, (0, 13), (13, 13)),
    streams("TP", parallel_on_two, (0, 13), (0, 13), sharded=False),
    broken("FSDP2, a batch that cannot be loaded", 2, fully_sharded, fails, 73 / 93),
    broken("TP, a batch that cannot be loaded", 2, parallel_on_two, fails, 73 / 93),
    broken("TP, random augmentation", 2, parallel_on_two, is_other, "other samples on rank"),
    of_transformers('tp_plan="auto"', 2, 64),
    of_transformers('tp_plan="auto"', 2, 101),
    Configuration(
        "written by hand, nothing said, 101/8",
        2,
        lambda rank, folder: evaluated(HandWritten(), samples(101)),
        "a forward that communicates with other processes",
    ),
    Configuration(
        "experts, nothing said, 101/8",
        2,
        lambda rank, folder: evaluated(Experts(), samples(101)),
        "a forward that communicates with other processes",
    ),
    Configuration(
        "experts, ep said, 101/8", 2, lambda rank, folder: evaluated(Experts(), samples(101), mesh="ep=2"), right(101)
    ),
    simple("pipeline", 2, pipeline, 64),
    simple("pipeline", 2, pipeline, 101),
    simple("pipeline with a loss, Schedule1F1B", 2, with_a_loss, 101),
    *(
        simple(f"pipeline, {kind.__name__} of 2 stages each", 2, functools.partial(stages, kind, loss=loss), 101)
        for kind, loss in (
            (ScheduleInterleaved1F1B, None),
            (ScheduleLoopedBFS, None),
            (ScheduleInterleavedZeroBubble, nn.CrossEntropyLoss()),
        )
    ),
    *(
        Configuration(
            f"pipeline, {kind.__name__}, 101/{BATCH}",
            2,
            functools.partial(_folded, kind, microbatches),
            "expected a schedule that torch runs without gradients",
        )
        for kind, microbatches in ((ScheduleZBVZeroBubble, 2), (ScheduleDualPipeV, 4))
    ),
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
)
THREE = (
    simple("whole model", 3, network, 101),
    simple("FSDP2", 3, fully_sharded, 101),
    simple("FSDP2", 3, fully_sharded, 5, 2),
    simple("TP", 3, lambda: tensor_parallel(mesh((3,), "tp")), 101),
    simple("TP, mesh without names", 3, lambda: tensor_parallel(_unnamed(3)), 101),
    streams("FSDP2", fully_sharded, (0, 6), (6, 7), (7, 13)),
    simple("pipeline", 3, lambda: pipeline(microbatches=3), 101),
    of_words("logits sharded over words", 3, lambda: words_parallel(mesh((3,), "tp"))),
)
FOUR = (
    simple("FSDP1, HYBRID_SHARD 2 × 2", 4, lambda: _hybrid(), 101),
    simple("HSDP 2 × 2", 4, lambda: fully_sharded(mesh((2, 2), "dp_replicate dp_shard")), 101, 16),
    simple("FSDP2, one batch for all", 4, fully_sharded, 5),
    simple("DP × TP 2 × 2", 4, lambda: tensor_parallel(mesh((2, 2), "dp tp")["tp"]), 64),
    simple("DP × TP 2 × 2", 4, lambda: tensor_parallel(mesh((2, 2), "dp tp")["tp"]), 101),
    simple("FSDP2 × TP 2 × 2", 4, lambda: sharded_and_parallel((2, 2), "dp tp", "dp", "tp"), 101),
    simple("DP × TP 2 × 2, sharded over classes", 4, lambda: vocabulary_parallel(mesh((2, 2), "dp tp")["tp"]), 101),
    Configuration(
        'FSDP2 × TP, dimensions "x" and "y", 64/8',
        4,
        lambda rank, folder: evaluated(sharded_and_parallel((2, 2), "x y", "x", "y"), samples(64)),
        "'x' is not known",
    ),
    Configuration(
        'the same with mesh={"x": "fsdp", "y": "tp"}, 101/8',
        4,
        lambda rank, folder: evaluated(
            sharded_and_parallel((2, 2), "x y", "x", "y"), samples(101), mesh={"x": "fsdp", "y": "tp"}
        ),
        right(101),
    ),
    said("nothing said, 2 × 2", (2, 2), lambda columns: {}, "HandWritten.group, a ProcessGroup"),
    said("data_group=, 2 × 2", (2, 2), lambda columns: {"data_group": columns}),
    said('mesh="dp=2,tp=2"', (2, 2), lambda columns: {"mesh": "dp=2,tp=2"}),
    of_transformers("FSDP2 × TP 2 × 2", 4, 101, fsdp_size=2, tp_size=2),
    simple("DP × pipeline 2 × 2", 4, lambda: pipeline(mesh((2, 2), "dp pp")["pp"]), 101),
    of_words("FSDP2 × tokens 2 × 2", 4, lambda: _words_on_two(), mesh="fsdp=2,cp=2"),
)
MORE = (
    simple("DP × TP 2 × 3", 6, lambda: tensor_parallel(mesh((2, 3), "dp tp")["tp"]), 101),
    simple("FSDP2 × TP 3 × 2", 6, lambda: sharded_and_parallel((3, 2), "dp tp", "dp", "tp"), 101),
    simple("FSDP2", 8, fully_sharded, 5, 2),
    simple(
        "HSDP × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp_replicate dp_shard tp", "dp_replicate dp_shard", "tp"),
        101,
    ),
    simple(
        "HSDP × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp_replicate dp_shard tp", "dp_replicate dp_shard", "tp"),
        64,
    ),
    simple(
        "DP × FSDP2 × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp fsdp tp", "fsdp", "tp"),
        101,
    ),
)
RESUMED = (
    *resumed("FSDP2", 2, 3, lambda size: fully_sharded()),
    *resumed("whole model", 3, 2, lambda size: network()),
    resumed_pipeline(first=True),
    resumed_pipeline(first=False),
    *resumed("DP × TP", 4, 2, lambda size: tensor_parallel(mesh((size // 2, 2), "dp tp")["tp"])),
)

ENDED = (
    broken("FSDP2, rank 0 killed while loading", 2, fully_sharded, killed(0), "RankError", dies=(0,)),
    broken(
        "TP, rank 1 killed while loading",
        2,
        parallel_on_two,
        killed(1),
        "RankError",
        dies=(1,),
    ),
    broken(
        "TP, rank 0 killed while loading",
        2,
        parallel_on_two,
        killed(0),
        "RankError",
        dies=(0,),
    ),
    broken("whole model, rank 2 killed while loading", 3, network, killed(2), "RankError", dies=(2,)),
    Configuration(
        "FSDP2, rank 2 killed inside a forward",
        3,
        lambda rank, folder: evaluated(KilledInside(fully_sharded(), 2, 2), samples(101)),
        "RankError",
        dies=(2,),
    ),
    Configuration(
        "FSDP2 × TP 2 × 2, rank 3 killed inside a forward",
        4,
        lambda rank, folder: evaluated(
            KilledInside(sharded_and_parallel((2, 2), "dp tp", "dp", "tp"), 3, 2), samples(101)
        ),
        "RankError",
        dies=(3,),
    ),
    Configuration("FSDP2, rank 1 killed while the report is made", 2, killed_in_report, "RankError", dies=(1,)),
    broken("TP, rank 1 asleep", 2, parallel_on_two, asleep(1), "RankError", dies=(1,)),
    broken(
        "FSDP2 × TP 2 × 2, rank 2 asleep",
        4,
        lambda: sharded_and_parallel((2, 2), "dp tp", "dp", "tp"),
        asleep(2),
        "RankError",
        at=12,
        dies=(2,),
    ),
)


def _unnamed(size: int) -> Any:
    return init_device_mesh("cpu", (size,))


def _hybrid() -> nn.Module:
    strategy = ShardingStrategy.HYBRID_SHARD
    return wrapped_layers(device_mesh=mesh((2, 2), "dp_replicate dp_shard"), sharding_strategy=strategy)


def _words_on_two() -> nn.Module:
    on = mesh((2, 2), "fsdp cp")
    model = SequenceParallel(on["cp"])
    model.inner = sharded_words(on["fsdp"])
    return model


CONFIGURATIONS = (*TWO, *THREE, *FOUR, *MORE, *RESUMED, *ENDED)


def label(each: Configuration) -> str:
    """What a configuration is called."""
    return f"{each.size}: {each.name}"


COMPARED = (
    *(
        "2: whole model, 101/8",
        "3: whole model, 101/8",
        "2: FSDP2, 5/2",
        "3: FSDP2, 101/8",
        "2: TP, 64/8",
        "2: TP, 101/8",
    ),
    *("4: DP × TP 2 × 2, 101/8", "4: FSDP2 × TP 2 × 2, 101/8"),
)
"""The configurations that other libraries are given, too."""


def case_of(name: str) -> Case:
    """What processes do for a configuration; of another library where its name stands behind an `@`."""
    name, _, library = name.partition("@")
    if library:
        (each,) = (each for each in CONFIGURATIONS if label(each) == name)
        act = OTHERS[library]

        def run(rank: int, folder: Path) -> Any:
            return act(each.model().eval(), each.count, each.batch)

        return Case(f"{name}@{library}", each.size, run, ends_group=True, limit_s=20.0)
    (each,) = (each for each in CONFIGURATIONS if label(each) == name)
    after = next((label(other) for other in CONFIGURATIONS if other.name == each.after), "") if each.after else ""
    return Case(name, each.size, each.act, bool(each.dies), after=after)
