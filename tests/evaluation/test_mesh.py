"""Models whose parts lie on several processes: the right number, or a refusal that says what was found."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import always_wrap_policy
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset, TensorDataset

from assay import Accuracy, evaluate
from assay.evaluation import evaluate_model
from assay.evaluation.processes.guard import CommunicationGuard
from assay.report import Report
from evaluation.stopping import Counters
from ranks import as_torchrun, preload, processes
from thinning import one_of_each

ROOT = Path(__file__).parents[2]
CLASSES = 3
METRIC = Accuracy(num_classes=CLASSES)


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def tensor_parallel(mesh):
    return parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def pipeline(rank):
    """The network in two stages, whose shapes were found with another number of rows."""
    layers = network()
    stage = PipelineStage(layers[:2] if rank == 0 else layers[2:], rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, 2)
    schedule.eval(*([torch.zeros(6, 4)] if rank == 0 else []))
    return schedule


def pipeline_of_training(rank):
    """The same with a loss, as one that was trained has it."""
    stage = PipelineStage(network()[slice(2) if rank == 0 else slice(2, 3)], rank, 2, torch.device("cpu"))
    return ScheduleGPipe(stage, 2, loss_fn=nn.CrossEntropyLoss())


def samples(count):
    """The network's own predictions as targets, every fifth of them replaced."""
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(1))
    y = network()(x).argmax(1)
    y[::5] = (y[::5] + 1) % CLASSES
    return TensorDataset(x, y)


def told(act):
    try:
        return act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


class HandWritten(nn.Module):
    """Processes add up what each of them computes, by themselves."""

    def __init__(self, group=None):
        super().__init__()
        self.inner = network()
        self.group = group

    def forward(self, x):
        out = self.inner(x) / dist.get_world_size(self.group)
        dist.all_reduce(out, group=self.group)
        return out


class Hides:
    """Nothing shows that it calls a module."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.inner(x)


def evaluated(model, data, **more):
    """The value, the proof and how many batches were repeated; or the error."""

    def act():
        how = {"device": "cpu", "batch_size": 8, "rank_timeout_s": 10.0, "n_resamples": 25, **more}
        report = evaluate(model, data, METRIC, **how)
        (section,) = report.sections
        run = dict(next(each for each in section.tables if each.name == "Run").rows)
        tables = [table for table in section.tables if table.name not in ("Every sample once", "Decisions", "Run")]
        text = Report("", [dataclasses.replace(section, tables=tables)], created="", environment={}).to_json()
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        return [section.values[0].value, report.notes[0], run.get("batches repeated without weight", ""), digest]

    return told(act)


def notes_on_gathering(model, metric):
    """What the report says of scores that were gathered."""

    def act():
        report = evaluate(model, samples(64), metric, device="cpu", batch_size=8, n_resamples=25)
        return [note for note in report.notes if "gathered" in note]

    return told(act)


def right(count):
    """What one process finds with the whole model."""
    value, note, _, digest = evaluated(network(), samples(count))
    return value, note, digest


class Stream(IterableDataset):
    """So many batches."""

    def __init__(self, start, stop):
        self.batches = range(start, stop)

    def __iter__(self):
        data = samples(101)
        return (data[8 * k : 8 * k + 8] for k in self.batches)


class OneBroken(Dataset):
    """One sample that cannot be loaded."""

    def __init__(self, broken):
        self.data, self.broken = samples(101), broken

    def __len__(self):
        return 101

    def __getitem__(self, k):
        return self.data[k if k != self.broken else 1 / 0]


class Augmented(OneBroken):
    def __getitem__(self, k):
        x, y = super().__getitem__(k)
        return x + dist.get_rank() / 100 * (k == 20), y


def sharded(mesh=None):
    model = network()
    return sharded_too(model, mesh)


def sharded_too(model, mesh):
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


class Stops(nn.Module):
    """Is interrupted after some batches; how many are left is no part of it."""

    def __init__(self, inner, batches):
        super().__init__()
        self.inner = inner
        self.counters = Counters(batches)

    def forward(self, x):
        if not self.counters.left:
            raise KeyboardInterrupt
        self.counters.left -= 1
        return self.inner(x)


def resumed(folder, batches, rank, size):
    try:
        return evaluated(Stops(sharded(), batches), samples(101), resume=folder, checkpoint_every=99.0)
    except KeyboardInterrupt:
        return "interrupted"


def odd_target(batch):
    """The target, but not of the batch that begins with sample 40."""
    return batch[1] if batch[0][0, 0] != samples(101)[40][0][0] else 1 / 0


def on_two(kept, rank, size):
    parallel = tensor_parallel(init_device_mesh("cpu", (2,), mesh_dim_names=("tp",)))
    unnamed = init_device_mesh("cpu", (2,))
    wrapped = FullyShardedDataParallel(network(), device_id=torch.device("cpu"), auto_wrap_policy=always_wrap_policy)
    vocabulary = parallelize_module(
        network(),
        unnamed,
        {"0": ColwiseParallel(output_layouts=Replicate()), "2": ColwiseParallel(use_local_output=False)},
    )
    replica = nn.parallel.DistributedDataParallel(
        nn.Sequential(network(), nn.BatchNorm1d(CLASSES, affine=False))
    ).eval()
    return {
        "tp 64": evaluated(parallel, samples(64)),
        "tp 101": evaluated(parallel, samples(101)),
        "tp function": evaluated(lambda x: parallel(x), samples(101)),
        "tp padded": evaluated(parallel, DataLoader(samples(101), 8, sampler=DistributedSampler(samples(101)))),
        "tp stream": evaluated(parallel, Stream(0, 13), batch_size=None, sharded=False),
        "tp skip": evaluated(parallel, OneBroken(20), on_error="skip"),
        "tp unnamed": evaluated(tensor_parallel(unnamed), samples(101)),
        "tp augmented": evaluated(parallel, Augmented(-1)),
        "vocabulary": evaluated(vocabulary, samples(101)),
        "labels": notes_on_gathering(vocabulary, METRIC),
        "top 2": notes_on_gathering(vocabulary, Accuracy(num_classes=CLASSES, top_k=2)),
        "pipeline": evaluated(pipeline(rank), samples(101)),
        "pipeline of odd batches": evaluated(pipeline_of_training(rank), samples(101), batch_size=9),
        "fsdp1": evaluated(wrapped, samples(5), batch_size=2),
        "fsdp2 5": evaluated(sharded(), samples(5), batch_size=2),
        "fsdp2 101": evaluated(sharded(), samples(101)),
        "fsdp2 streams": evaluated(sharded(), Stream(*((0, 9), (9, 13))[rank]), batch_size=None, sharded=True),
        "fsdp2 one stream": evaluated(sharded(), Stream(*((0, 13), (13, 13))[rank]), batch_size=None, sharded=True),
        "fsdp2 stopped": resumed(kept, 3, rank, size),
        "fsdp2 resumed": resumed(kept, 99, rank, size),
        "fsdp2 skip": evaluated(sharded(), OneBroken(20), on_error="skip"),
        "hand-written": evaluated(
            HandWritten(), samples(101), mesh=init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
        ),
        "ddp inside": evaluated(lambda x: replica(x), samples(5), batch_size=2),
        "labels of one batch": evaluated(sharded(), samples(101), inputs=0, target=odd_target, on_error="skip"),
        "outputs in parts": evaluated(lambda x: parallel(x)[:, [rank, 1, 2]], samples(101)),
    }


@pytest.mark.slow
def test_a_run_of_a_shared_model_resumes_on_another_number_of_processes(tmp_path):
    folders = tmp_path / "two", tmp_path / "three"
    for each in folders:
        each.mkdir()
    kept = str(tmp_path / "kept")
    assert processes(functools.partial(resumed, kept, 2), 2, folders[0]) == ["interrupted"] * 2
    value, note, digest = right(101)
    assert processes(functools.partial(resumed, kept, 99), 3, folders[1]) == [[value, note, "0", digest]] * 3


def on_four(rank, size):
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    letters = init_device_mesh("cpu", (2, 2), mesh_dim_names=("x", "y"))
    replicas = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp_replicate", "dp_shard"))
    columns = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    return {
        "dp x tp": evaluated(tensor_parallel(grid["tp"]), samples(101)),
        "fsdp2 x tp": evaluated(sharded_too(tensor_parallel(grid["tp"]), grid["dp"]), samples(101)),
        "hsdp": evaluated(sharded(replicas), samples(101), batch_size=16),
        "one batch": evaluated(sharded(), samples(5)),
        "x, y": evaluated(sharded_too(tensor_parallel(letters["y"]), letters["x"]), samples(101)),
        "x, y said": evaluated(
            sharded_too(tensor_parallel(letters["y"]), letters["x"]), samples(101), mesh={"x": "fsdp", "y": "tp"}
        ),
        "unexplained": evaluated(HandWritten(rows[rank // 2]), samples(101)),
        "data_group": evaluated(HandWritten(rows[rank // 2]), samples(101), data_group=columns[rank % 2]),
        "mesh": evaluated(HandWritten(rows[rank // 2]), samples(101), mesh=grid),
        "sizes": evaluated(HandWritten(rows[rank // 2]), samples(101), mesh="dp=2,tp=2"),
    }


MEMBERS = {  # of each configuration the samples and the repeated batches
    "tp 64": (64, 0),
    "tp 101": (101, 0),
    "tp function": (101, 0),
    "tp padded": (101, 0),
    "tp unnamed": (101, 0),
    "vocabulary": (101, 0),
    "pipeline": (101, 0),
    "pipeline of odd batches": (101, 0),
    "hand-written": (101, 0),
    "fsdp1": (5, 1),
    "fsdp2 5": (5, 1),
    "fsdp2 101": (101, 1),
    "fsdp2 resumed": (101, 1),
    "ddp inside": (5, 1),
    "dp x tp": (101, 0),
    "fsdp2 x tp": (101, 2),
    "hsdp": (101, 1),
    "one batch": (5, 3),
    "x, y said": (101, 2),
    "data_group": (101, 2),
    "mesh": (101, 0),
    "sizes": (101, 0),
}


def check(results):
    """Every process has the report of one process."""
    for name, found in results[0].items():
        assert all(other[name] == found for other in results), name
        if name in MEMBERS:
            count, repeats = MEMBERS[name]
            value, note, digest = right(count)
            assert found == [value, note, str(repeats), digest], name


@pytest.mark.skipif(not hasattr(ScheduleGPipe, "eval"), reason="pipelines of this release have no eval")
def test_two_processes_that_share_a_model_give_the_report_of_one(tmp_path):
    results = processes(functools.partial(on_two, str(tmp_path / "kept")), 2, tmp_path)
    check(results)
    found = results[0]
    assert "got other samples on rank 1 than on the others of ranks 0, 1 (batch 2)" in found["tp augmented"]
    assert "got other predictions on rank 1 than on rank 0 for the same samples (batch" in found["outputs in parts"]
    assert not found["labels"]
    assert "metrics that need more than the class" in "".join(found["top 2"])
    value = right(101)[0]
    assert [found[f"{name}"][::2] for name in ("tp stream", "fsdp2 streams", "fsdp2 one stream")] == [
        [value, "0"],
        [value, "5"],
        [value, "13"],
    ]
    assert found["labels of one batch"][1:3] == [found["tp skip"][1], "2"]
    for name, repeats in (("tp skip", "0"), ("fsdp2 skip", "2")):
        assert found[name][:3] == [
            73 / 93,
            "Every sample once: 101 expected, 93 counted, 0 duplicated, 0 missed, 8 skipped.",
            repeats,
        ]


@pytest.mark.exhaustive
def test_four_processes_on_meshes_of_two_dimensions_give_the_report_of_one(tmp_path):
    results = processes(on_four, 4, tmp_path)
    check(results)
    assert "'x' is not known, expected names such as tp," in results[0]["x, y"]
    assert 'Pass mesh= with a name for each dimension, such as mesh={"x": "fsdp", "y": "tp"}' in results[0]["x, y"]
    assert "got HandWritten.group, a ProcessGroup" in results[0]["unexplained"]


def test_a_compiled_model_is_compiled_although_its_first_batch_is_watched():
    graphs = []
    model = torch.compile(network(), backend=lambda graph, _: graphs.append(graph) or graph.forward)
    with CommunicationGuard():
        model(torch.zeros(2, 4))
    assert len(graphs) == 1


def refusals(rank, size):
    parallel = tensor_parallel(init_device_mesh("cpu", (size,), mesh_dim_names=("tp",)))
    models = {"hidden": Hides(parallel), "hand-written": HandWritten(), "keeps": HandWritten(dist.group.WORLD)}
    models["compiled"] = torch.compile(HandWritten(), backend="aot_eager")
    return {name: evaluated(model, samples(9)) for name, model in models.items()} | {
        "no last stage": evaluated(lambda x: None, samples(9), mesh={"pp": size}),
        "no names": evaluated(network(), samples(9), mesh=init_device_mesh("cpu", (size,))),
        "word": evaluated(network(), samples(9), mesh="tp"),
        "size": evaluated(network(), samples(9), mesh={"dp": 2, "tp": 2}),
        "role": evaluated(parallel, samples(9), mesh={"tp": "columns"}),
        "rank": evaluated(HandWritten(), samples(9), data_group=rank),
    }


def test_a_model_whose_sharding_is_not_understood_is_refused_on_all_processes(tmp_path):
    for texts in processes(refusals, 2, tmp_path):
        assert "a forward that communicates with other processes (aten.linear" in texts["hidden"]
        assert "a forward that communicates with other processes (c10d.allreduce_.default)" in texts["hand-written"]
        assert "a forward that communicates with other processes (_c10d_functional.all_reduce" in texts["compiled"]
        assert "got HandWritten.group, a ProcessGroup" in texts["keeps"]
        assert "outputs of the model: got None" in texts["no last stage"]
        assert "mesh: got dimensions without names" in texts["no names"]
        assert "mesh: got {'tp': ''}, expected a DeviceMesh with named dimensions" in texts["word"]
        assert "mesh: got 2 x 2 = 4 processes, expected as many as there are: 2" in texts["size"]
        assert "mesh: got a dimension 'columns', expected tp, sp, cp, fsdp," in texts["role"]
        assert "data_group: got int, expected a process group" in texts["rank"]


class Breaks(Dataset):
    """On the second process something happens with the sample 20."""

    def __init__(self, act):
        self.data, self.act = samples(64), act

    def __len__(self):
        return 64

    def __getitem__(self, k):
        if k == 20 and dist.get_rank() == 1:
            ENDINGS[self.act]()
        return self.data[k]


ENDINGS = {"killed": lambda: os.kill(os.getpid(), signal.SIGKILL), "asleep": lambda: time.sleep(9)}


class BreaksInside(nn.Module):
    """The forward of the second process fails in the middle."""

    def __init__(self):
        super().__init__()
        self.inner = sharded()
        self.batches = 0

    def forward(self, x):
        hidden = self.inner[1](self.inner[0](x))
        self.batches += 1
        if self.batches == 2 and dist.get_rank() == 1:
            raise ZeroDivisionError("by design")
        return self.inner[2](hidden)


def broken(rank, folder, act):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    model, data = (BreaksInside(), samples(64)) if act == "inside" else (tensor_parallel(mesh), Breaks(act))
    text = evaluated(model, data, rank_timeout_s=2.0, on_error="skip")
    (folder / str(rank)).write_text(text, "utf-8")
    os._exit(0)


@pytest.mark.parametrize("act", ["killed", pytest.param("asleep", marks=pytest.mark.slow), "inside"])
@one_of_each(lambda act: act == "asleep")
def test_a_process_that_does_not_come_ends_all_others_with_an_error_that_names_it(tmp_path, act):
    context = mp.get_context("forkserver")
    preload()
    ranks = [context.Process(target=broken, args=(rank, tmp_path, act)) for rank in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(60)
    text = (tmp_path / "0").read_text("utf-8")
    assert text.startswith("RankError: ranks: got ")
    if act == "inside":
        other = (tmp_path / "1").read_text("utf-8")
        assert "got ZeroDivisionError while predicting: by design" in other
        assert "got a failure of rank 1 (BatchError: batch with the ids 24, 25," in text
    else:
        assert "no sign of life of rank 1 " in text or "ranks did not come; rank 1 is the last, " in text


class Late(Breaks):
    """The second process sleeps when it is asked how many samples there are."""

    def __len__(self):
        if dist.get_rank() == 1:
            time.sleep(5)
        return 64


def late(rank, size):
    """The errors where the second process sleeps before the loop, and after it."""
    found = [evaluated(network(), Late("asleep"), rank_timeout_s=2.0)]
    made = evaluate_model.build_report
    dist.barrier()

    def slow(*given):
        time.sleep(5 if rank == 1 else 0)
        return made(*given)

    with mock.patch.object(evaluate_model, "build_report", slow):
        found.append(evaluated(network(), samples(64), rank_timeout_s=2.0))
    dist.barrier()
    return found


@pytest.mark.slow
def test_a_process_that_sleeps_before_or_after_the_loop_ends_all_with_an_error_that_names_it(tmp_path):
    first, second = processes(late, 2, tmp_path)
    assert "got 2 s without rank 1 while the evaluation is prepared, expected 2 ranks that work" in first[0]
    assert "got 2 s without rank 1 (last in batch 4, reporting) while the report is made" in first[1]
    assert all(text.startswith("RankError: ranks: got ") for text in second)


@pytest.mark.slow
def test_all_configurations_of_the_table_are_right():
    run = subprocess.run(
        [sys.executable, "-m", "benchmarks.meshes", "--check"], cwd=ROOT, capture_output=True, text=True
    )
    assert not run.returncode, run.stdout


class LastLogits(nn.Module):
    """The logits of the last token."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x).logits[:, -1]


def of_transformers(folder, rank, size):
    from transformers import LlamaForCausalLM

    as_torchrun(rank, size)
    parts, whole = (LlamaForCausalLM.from_pretrained(folder, tp_plan=plan).eval() for plan in ("auto", None))
    x = torch.randint(40, (101, 6), generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        y = LastLogits(whole)(x).argmax(1)
    y[::5] = (y[::5] + 1) % 40
    found = []
    for model in (LastLogits(parts), lambda x: parts(x).logits[:, -1]):
        report = evaluate(model, TensorDataset(x, y), Accuracy(num_classes=40), device="cpu", batch_size=8)
        found.append(report.sections[0].values[0].value)
    return found


@pytest.mark.slow
def test_a_model_that_transformers_has_made_tensor_parallel_needs_no_argument(tmp_path):
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    config = transformers.LlamaConfig(**sizes, num_attention_heads=4, num_key_value_heads=2)
    transformers.LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    act = functools.partial(of_transformers, str(tmp_path / "model"))
    assert processes(act, 2, tmp_path) == [[80 / 101] * 2] * 2
