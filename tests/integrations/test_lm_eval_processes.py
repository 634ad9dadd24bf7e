"""lm-eval's tasks on several processes: the report of one on each of them, or one error on all."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from assay.report import Report
from evaluation.stopping import Counters
from language.models import folder as saved
from language.models import llama
from ranks import as_torchrun, processes

pytest.importorskip("lm_eval", reason="make test-integrations installs lm-eval")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

TASKS = Path(__file__).parent / "lm_eval_runs" / "tasks"
NAMES = ("tiny_choice", "tiny_number", "tiny_text")
WORDS, SIZE = 256, 24


class Words(nn.Sequential):
    """Logits of the byte after each one, by that byte and the one before it."""

    def __init__(self):
        torch.manual_seed(2)
        super().__init__(nn.Embedding(WORDS, SIZE), nn.Linear(SIZE, 2 * SIZE), nn.Tanh(), nn.Linear(2 * SIZE, WORDS))
        with torch.no_grad():
            self[3].weight *= 9

    def forward(self, ids):
        x = self[0](ids)
        return self[3](self[2](self[1](x + x.roll(1, 1))))


class WordsByHand(Words):
    """Each process of a group has some hidden units, and they add up by themselves."""

    def __init__(self, group=None):
        super().__init__()
        self.group = group

    def forward(self, ids):
        out = super().forward(ids) / dist.get_world_size(self.group)
        dist.all_reduce(out, group=self.group)
        return out


class OwnTokens(nn.Module):
    """Each process has the logits of some tokens of each text."""

    def __init__(self, mesh):
        super().__init__()
        self.inner, self.mesh = Words(), mesh

    def forward(self, ids):
        local = self.inner(ids).chunk(self.mesh.size(), dim=1)[self.mesh.get_local_rank()]
        return DTensor.from_local(local, self.mesh, [Shard(1)], run_check=False)


class First(nn.Module):
    def __init__(self):
        super().__init__()
        whole = Words()
        self.embed, self.inner = whole[0], whole[1]

    def forward(self, ids):
        x = self.embed(ids)
        return self.inner(x + x.roll(1, 1))


def pipeline(rank):
    whole = Words()
    part = First() if not rank else nn.Sequential(whole[2], whole[3])
    return ScheduleGPipe(PipelineStage(part, rank, 2, torch.device("cpu")), 2)


def sharded(model=None, on=None):
    model = model or Words()
    for layer in (model[0], model[1], model[3]):
        fully_shard(layer, mesh=on)
    return fully_shard(model, mesh=on)


def parallel(on):
    return parallelize_module(Words(), on, {"1": ColwiseParallel(), "3": RowwiseParallel()})


def words_parallel(on):
    plan = {"1": ColwiseParallel(output_layouts=Replicate()), "3": ColwiseParallel(use_local_output=False)}
    return parallelize_module(Words(), on, plan)


def run(model, *, tasks=NAMES, folder="tasks", **more):
    """The values and samples of the report, or the error."""
    from lm_eval import tasks as known

    from assay.integrations import LmEvalModel, run_lm_eval

    how = {"limit": 7, "num_fewshot": 1, "rank_timeout_s": 20.0, **more}
    few = functools.partial(known.TaskManager, include_defaults=False)  # lm-eval reads 14,000 files for its own tasks
    try:
        with mock.patch.object(known, "TaskManager", few):
            return of(run_lm_eval(LmEvalModel(model, device="cpu", batch_size=3), tasks, include_path=folder, **how))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def of(report):
    """What a report has, as JSON that is the same wherever its values have the same bits."""
    sections = [dataclasses.replace(each, tables=()) for each in report.sections]
    return [report.created, report.to_json(), Report("", sections, created="", environment={}).to_json()]


def values(result):
    return [value["value"] for section in json.loads(result[2])["sections"] for value in section["values"]]


def on_two(folder, rank, size):
    os.chdir(folder)
    tp, cp = (init_device_mesh("cpu", (2,), mesh_dim_names=(name,)) for name in ("tp", "cp"))
    whole = Words()
    replica = nn.parallel.DistributedDataParallel(Words())
    return {
        "whole": run(Words()),
        "function": run(lambda ids: whole(ids)),
        "DDP": run(replica),
        "FSDP2": run(sharded()),
        "pipeline": run(pipeline(rank)),
        "tp": run(parallel(tp)),
        "words": run(words_parallel(tp)),
        "tokens": run(OwnTokens(cp), mesh={"cp": 2}),
        "by hand": run(WordsByHand(), mesh="tp=2"),
        "nothing said": run(WordsByHand()),
    }


@pytest.fixture
def here(tmp_path, monkeypatch):
    shutil.copytree(TASKS, tmp_path / "tasks")
    monkeypatch.chdir(tmp_path)
    return tmp_path


SAME_BITS = ("whole", "function", "DDP", "FSDP2", "pipeline")


def test_two_processes_give_the_report_of_one(here):
    expected = run(Words())
    assert len(values(expected)) > 6
    first, second = processes(functools.partial(on_two, str(here)), 2, here)
    assert first == second  # the whole report, with its time
    for name, found in first.items():
        if name == "nothing said":
            assert "got a forward that communicates with other processes" in found
        elif name in SAME_BITS:
            assert found[2] == expected[2], name
        else:
            assert values(found) == pytest.approx(values(expected), rel=1e-4), name


def on_four(folder, rank, size):
    os.chdir(folder)
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    pairs = [dist.new_group([0, 2]), dist.new_group([1, 3])]
    rows = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    return {
        "dp x tp": run(parallel(grid["tp"])),
        "fsdp2 x tp": run(sharded(parallel(grid["tp"]), grid["dp"])),
        "mesh": run(WordsByHand(rows[rank // 2]), mesh="dp=2,tp=2"),
        "data_group": run(WordsByHand(rows[rank // 2]), data_group=pairs[rank % 2]),
    }


@pytest.mark.slow
def test_four_processes_on_a_mesh_of_two_dimensions_give_the_report_of_one(here):
    expected = run(Words())
    results = processes(functools.partial(on_four, str(here)), 4, here)
    assert all(each == results[0] for each in results)
    for name, found in results[0].items():
        assert values(found) == pytest.approx(values(expected), rel=1e-4), name


def of_transformers(folder, rank, size):
    from transformers import AutoModelForCausalLM

    os.chdir(folder)
    as_torchrun(rank, size)
    return run(AutoModelForCausalLM.from_pretrained("tiny", tp_plan="auto").eval())


@pytest.mark.slow
def test_a_model_that_transformers_has_made_tensor_parallel_needs_no_argument(here):
    saved(here / "tiny", model=llama())
    expected = run(llama())
    first, second = processes(functools.partial(of_transformers, str(here)), 2, here)
    assert first == second
    assert values(first) == pytest.approx(values(expected), rel=1e-4)


class Breaks(Words):
    """Something happens on the second process in its third call."""

    def __init__(self, act):
        super().__init__()
        self.act, self.calls = act, 0

    def forward(self, ids):
        self.calls += 1
        if self.calls == 3 and dist.get_rank() == 1:
            self.act()
        return super().forward(ids)


def fails():
    raise ZeroDivisionError("by design")


def errors(folder, rank, size):
    from assay.integrations import LmEvalModel

    os.chdir(folder)
    other = "tasks" if not rank else "other"
    found = {"raises": run(Breaks(fails)), "no such task": run(Words(), tasks=["nothing"])}
    found["one without"] = run(Words(), folder="tasks" if not rank else "nowhere")
    if rank:
        shutil.copytree("tasks", other)
        choices = Path(other, "choice.yaml")
        choices.write_text(choices.read_text().replace("tasks/choice", "other/choice"))
        Path("other/choice.jsonl").write_text(Path("tasks/choice.jsonl").read_text().replace("mat", "cat"))
    dist.barrier()
    found["other data"] = run(Words(), tasks=["tiny_choice"], folder=other)
    torch.manual_seed(rank)
    found["other weights"] = run(nn.Embedding(WORDS, WORDS))
    try:
        model = LmEvalModel(parallel(init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))), device="cpu")
        model.loglikelihood_rolling([type("Request", (), {"args": ("abc",)})()])
    except Exception as error:
        found["alone"] = str(error)
    return found


def test_an_error_on_one_process_is_one_on_all(here):
    first, second = processes(functools.partial(errors, str(here)), 2, here)
    assert second["raises"] == "ZeroDivisionError: by design"
    assert "RankError: ranks: got a failure of rank 1 (ZeroDivisionError: by design)" in first["raises"]
    assert "include_path: got nowhere, which is no folder" in second["one without"]
    assert "RankError: ranks: got a failure of rank 1 (ConfigError: include_path: got nowhere" in first["one without"]
    for found in (first, second):
        assert "tasks: got 'nothing', expected tasks that lm-eval has" in found["no such task"]
        assert "requests: got other requests (loglikelihood) on rank 1 than on rank 0" in found["other data"]
        assert "got another model on rank 1 than on rank 0 (weight)" in found["other weights"]
        assert "got a model whose forward communicates with other processes: tp (same samples)" in found["alone"]
        assert "Measure it with assay.integrations.run_lm_eval" in found["alone"]


class Stops(Words):
    """Is interrupted after some calls; how many are left is no part of it."""

    def __init__(self, calls):
        super().__init__()
        self.counters = Counters(calls)

    def forward(self, ids):
        if not self.counters.left:
            raise KeyboardInterrupt
        self.counters.left -= 1
        return super().forward(ids)


def interrupted(folder, calls, rank, size):
    os.chdir(folder)
    try:
        return run(Stops(calls), resume="kept")
    except KeyboardInterrupt:
        return "interrupted"


@pytest.mark.slow
def test_a_run_resumes_on_another_number_of_processes_with_the_bits_of_one(here):
    expected = run(Words())
    act = functools.partial(interrupted, str(here))
    assert "interrupted" in processes(functools.partial(act, 12), 2, here)
    assert (here / "kept" / "lm-eval-answers.json").exists()
    for size in (3, 1):
        for found in processes(functools.partial(act, 999), size, here):
            assert found[2] == expected[2], found


def killed(folder, rank):
    os.chdir(folder)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    Path(f"{rank}.txt").write_text(run(Breaks(lambda: os.kill(os.getpid(), signal.SIGKILL)), rank_timeout_s=3.0))
    os._exit(0)


@pytest.mark.slow
def test_a_killed_process_ends_the_other_with_an_error(here):
    context = torch.multiprocessing.get_context("forkserver")
    ranks = [context.Process(target=killed, args=(str(here), rank)) for rank in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(120)
    text = (here / "0.txt").read_text()
    assert text.startswith("RankError: ranks: got ")
    assert not (here / "1.txt").exists()


FACTORY = """
import os
from torch.distributed.device_mesh import init_device_mesh
from integrations.test_lm_eval_processes import Words, WordsByHand, parallel


def shared():
    return parallel(init_device_mesh("cpu", (2,), mesh_dim_names=("columns",)))
"""


@pytest.mark.slow
@pytest.mark.parametrize(("model", "more"), [("Words", ()), ("shared", ("--mesh", "columns=tp"))])
def test_the_command_line_under_torchrun_prints_and_writes_one_report(here, model, more):
    (here / "factory.py").write_text(FACTORY)
    options = ["--tasks", ",".join(NAMES), "--include-path", "tasks", "--limit", "4", "--device", "cpu", *more]
    torchrun = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--no-python", sys.executable]
    found = {}
    for name, launch, named in (("alone", (), "Words"), ("two", torchrun, model)):
        command = [
            sys.executable,
            *launch,
            "-m",
            "assay",
            "lm-eval",
            f"factory:{named}",
            *options[: None if launch else 8],
        ]
        environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join([str(here), *sys.path])}
        done = subprocess.run([*command, "--out", name], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("tiny_choice") == 1, done.stdout
        found[name] = values(of(Report.load(here / name)))
    assert found["two"] == pytest.approx(found["alone"], rel=1e-4)
