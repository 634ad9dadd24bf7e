"""Several processes give the bits of one, and know when one of them is gone."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import signal
import subprocess
import sys
import time

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Subset, TensorDataset

from assay import AUROC, Accuracy, F1Score
from assay.evaluation import evaluate
from assay.evaluation.processes.model_digest import ModelDigest
from assay.metrics import LogLoss
from assay.report import Report
from evaluation.exact_products import classifier, sixteenths
from ranks import processes
from thinning import one_of_each

CLASSES = 3
METRICS = {
    "acc": Accuracy(num_classes=CLASSES),
    "auroc": AUROC(num_classes=CLASSES),
    "F1": F1Score(num_classes=CLASSES, average="macro"),
    "loss": LogLoss(num_classes=CLASSES),
}
OF_THIS_RUN = ("Every sample once", "Decisions", "Run")


def samples(count):
    generator = torch.Generator().manual_seed(7)
    return TensorDataset(
        sixteenths(count, 4, generator=generator), torch.randint(CLASSES, (count,), generator=generator)
    )


def model():
    torch.manual_seed(0)
    return classifier(4, CLASSES)


def found(report):
    (section,) = report.sections
    proof = dict(next(each for each in section.tables if each.name == "Every sample once").rows)
    counts = [proof[name] for name in ("expected", "counted", "duplicated", "missed")]
    return [measured(section), counts, proof["given again, and not counted again"]]


def measured(section):
    """Values, intervals, slices, samples, tables and plots, to the bit; a digest, as there are many."""
    tables = [table for table in section.tables if table.name not in OF_THIS_RUN]
    text = Report("", [dataclasses.replace(section, tables=tables)], created="", environment={}).to_json()
    return hashlib.sha256(text.encode()).hexdigest()


class Stream(IterableDataset):
    def __init__(self, start, stop):
        self.start, self.stop = start, stop

    def __iter__(self):
        data = samples(53)
        return ({"x": data[k][0], "y": data[k][1], "id": k} for k in range(self.start, self.stop))


def padded(data, rank, size):
    sampler = DistributedSampler(data, size, rank, shuffle=False)
    return DataLoader(data, batch_size=4, sampler=sampler)


def same(data, rank, size):
    return DataLoader(data, batch_size=4)


def shuffled_by_each_rank(data, rank, size):
    torch.manual_seed(rank)
    return DataLoader(data, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(rank))


def uneven(data, rank, size):
    bounds = [0, *(len(data) * (k + 1) ** 2 // size**2 for k in range(size))]
    return DataLoader(data, batch_size=4, sampler=range(bounds[rank], bounds[rank + 1]))


def all_on_the_last(data, rank, size):
    return DataLoader(data, batch_size=4, sampler=range(len(data)) if rank == size - 1 else [])


def only_a_data_set(data, rank, size):
    return data


LOADERS = (padded, same, shuffled_by_each_rank, uneven, all_on_the_last, only_a_data_set)


def on_each(rank, size):
    data = samples(53)
    net = model()
    how = {"slices": {"class": 1, "right of 0": lambda batch: batch[0][:, 0] > 0, "both": ("class", "right of 0")}}
    results = {
        make.__name__: found(evaluate(net, make(data, rank, size), METRICS, device="cpu", **how)) for make in LOADERS
    }
    bounds = {1: [0, 53], 2: [0, 20, 53], 3: [0, 20, 20, 53], 4: [0, 1, 1, 40, 53]}[size]
    mine = Subset(data, range(bounds[rank], bounds[rank + 1]))
    results["shards"] = found(evaluate(net, mine, METRICS, device="cpu", sharded=True, **how))
    stream = DataLoader(Stream(bounds[rank], bounds[rank + 1]), batch_size=4)
    slices = {"class": "y", "right of 0": lambda batch: batch["x"][:, 0] > 0, "both": ("class", "right of 0")}
    how = {"inputs": "x", "ids": "id", "slices": slices}
    results["stream"] = found(evaluate(net, stream, METRICS, device="cpu", **how))
    everything = DataLoader(Stream(0, 53), batch_size=4)
    results["dealt"] = found(evaluate(net, everything, METRICS, device="cpu", sharded=False, **how))
    return results


@functools.cache
def alone():
    return on_each(0, 1)


@pytest.mark.parametrize("size", [2, 3, 4])
@one_of_each()
def test_any_number_of_processes_gives_the_bits_of_one(size, tmp_path):
    results = processes(on_each, size, tmp_path)
    expected = alone()["same"][0]
    for name, (section, counts, again) in results[0].items():
        assert section == expected, name
        assert counts == ([None, 53, 0, None] if name in ("stream", "dealt") else [53, 53, 0, 0]), name
        assert all(other[name] == [section, counts, again] for other in results), name
    assert results[0]["padded"][2] == -53 % size


def five(rank, size):
    """5 samples of which 4 are right: 0.8, where padding with the first sample gives 5 of 6."""
    right = torch.tensor([1, 1, 1, 1, 0])
    data = TensorDataset(nn.functional.one_hot(right, 2).float(), torch.ones(5, dtype=torch.int64))
    loader = DataLoader(data, batch_size=2, sampler=DistributedSampler(data, size, rank, shuffle=False))
    report = evaluate(nn.Identity(), loader, Accuracy(num_classes=2), device="cpu")
    return [report.sections[0].values[0].value, *found(report)[1:]]


def test_five_samples_on_three_ranks_with_a_padded_sampler(tmp_path):
    for value, counts, again in processes(five, 3, tmp_path):
        assert (value, counts, again) == (0.8, [5, 5, 0, 0], 1)


def told(act):
    try:
        act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def misunderstandings(rank, size):
    net, data = model(), samples(20)
    half = Subset(data, range(rank * 10, rank * 10 + 10))
    stream = DataLoader(Stream(0, 12), batch_size=4)
    cases = [
        lambda: evaluate(net, half, METRICS, device="cpu"),
        lambda: evaluate(net, stream, METRICS, device="cpu", inputs="x"),
        lambda: evaluate(net, data, METRICS if rank else "no metric", device="cpu"),
        lambda: evaluate(net, data, METRICS if rank else METRICS["acc"], device="cpu"),
    ]
    texts = [told(case) for case in cases]
    report = evaluate(net, stream, METRICS, device="cpu", inputs="x", ids="id", sharded=True)
    return [*texts, next(each for each in report.sections[0].tables if each.name == "Every sample once").note]


def test_what_ranks_cannot_know_must_be_said_and_all_are_told(tmp_path):
    failure = "ConfigError: metrics: got 'no metric'"
    for rank, (shards, stream, metrics, unequal, twice) in enumerate(processes(misunderstandings, 2, tmp_path)):
        assert shards.startswith("ConfigError: data: got data sets of 10, 10 samples, whose samples differ")
        assert "Pass sharded=True" in shards
        assert "data: got the same first batch on several ranks, expected batches of each rank's own" in stream
        if rank == 0:
            assert metrics.startswith(failure)
        else:
            assert metrics.startswith(f"RankError: ranks: got a failure of rank 0 ({failure}")
        assert unequal.startswith("SyncError: sync: got Meter(Accuracy=Accuracy(")
        assert twice.startswith("24 counted, 12 duplicated;")


def fails_on_one(rank, size):
    def predict(x):
        if rank == 1:
            raise ZeroDivisionError("by design")
        time.sleep(0.05)
        return x

    data = TensorDataset(torch.full((4000, CLASSES), 0.3), torch.zeros(4000, dtype=torch.int64))
    start = time.monotonic()
    text = told(lambda: evaluate(predict, data, METRICS, device="cpu", batch_size=1))
    return [text, time.monotonic() - start < 60]


def test_a_rank_that_fails_ends_the_others_with_its_error(tmp_path):
    first, second = processes(fails_on_one, 2, tmp_path)
    assert first[0].startswith("RankError: ranks: got a failure of rank 1 (BatchError: batch with the ids 1 ")
    assert "ZeroDivisionError while predicting: by design" in first[0]
    assert second[0].startswith("BatchError")
    assert first[1], "the bare loop would have taken 100 seconds"


def killed(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)

    def predict(x):
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.05)
        return x

    data = TensorDataset(torch.full((4000, CLASSES), 0.3), torch.zeros(4000, dtype=torch.int64))
    text = told(lambda: evaluate(predict, data, METRICS, device="cpu", batch_size=1, rank_timeout_s=3))
    (folder / "told").write_text(text, "utf-8")
    os._exit(0)


@pytest.mark.exhaustive
def test_a_rank_that_is_killed_ends_the_others_within_the_stated_time(tmp_path):
    context = mp.get_context("forkserver")
    ranks = [context.Process(target=killed, args=(rank, tmp_path)) for rank in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join(100)
    assert ranks[1].exitcode == -signal.SIGKILL
    assert re.fullmatch(
        r"RankError: ranks: got no sign of life of rank 1( \(last in batch 0, predicting\))? for 3 s, "
        r"expected 2 ranks that work\. See the error of that rank; run again\.",
        (tmp_path / "told").read_text("utf-8").replace("loading", "predicting"),
    )


def other_models(rank, size):
    torch.manual_seed(rank)
    net = nn.Sequential(nn.Linear(4, CLASSES), nn.Softmax(1))
    one_bit = model()
    if rank == 1:
        with torch.no_grad():
            one_bit[0].bias[1] = torch.nextafter(one_bit[0].bias[1], torch.tensor(9.0))
    models = (net, one_bit, model() if rank else model()[0], torch.sigmoid if rank else torch.relu, model())
    return [told(lambda each=each: evaluate(each, samples(9), METRICS, device="cpu")) for each in models]


def broadcast_buffers(rank, size):
    torch.manual_seed(0)
    net = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, CLASSES), nn.Softmax(1)).eval()
    net[0].running_mean += rank
    wrapped = nn.parallel.DistributedDataParallel(net, init_sync=False)
    values = []
    for each in (wrapped, net):  # the forward of the first makes those of the second equal
        values.append(evaluate(each, samples(9), METRICS, device="cpu").sections[0].values[0].value)
    net[0].running_mean += rank
    return *values, told(lambda: evaluate(net, samples(9), METRICS, device="cpu"))


def test_buffers_that_a_forward_broadcasts_may_differ_before_it(tmp_path):
    for wrapped, net, differs in processes(broadcast_buffers, 3, tmp_path):
        assert wrapped == net
        assert "got another model on ranks 1, 2 than on rank 0 (0.running_mean)" in differs


def test_models_that_differ_between_ranks_are_an_error_on_all_before_anything_is_counted(tmp_path):
    for seeds, one_bit, layers, functions, same_model in processes(other_models, 3, tmp_path):
        assert seeds.startswith("ConfigError: model: got another model on ranks 1, 2 than on rank 0 (0.bias, 0.weight)")
        assert one_bit.startswith("ConfigError: model: got another model on rank 1 than on rank 0 (0.bias), expected")
        assert layers.startswith("ConfigError: model: got another model on rank 0 than on rank 1 (0.bias, 0.weight, ")
        assert functions.startswith("ConfigError: model: got another model on rank 0 than on rank 1 (_Var")
        assert same_model == "nothing"


def test_tensors_without_bits_are_compared_by_their_shapes():
    net = nn.Linear(4, CLASSES, device="meta")
    net.register_buffer("empty", torch.zeros(0, 3))
    net.register_buffer("angle", torch.ones(2, dtype=torch.complex64))
    net.register_buffer("mask", torch.ones(2, dtype=torch.bool))
    net.register_buffer("sparse", torch.eye(3).to_sparse())
    digest = ModelDigest.of(net)
    assert digest == ModelDigest.of(net)
    assert digest != ModelDigest.of(nn.Linear(5, CLASSES, device="meta"))
    net.angle[1] = 1j
    assert {name for name, _ in digest.tensors.items() ^ ModelDigest.of(net).tensors.items()} == {"angle"}


class Nameless(IterableDataset):
    def __init__(self, rank):
        self.rank = rank

    def __iter__(self):
        data = samples(40)
        return iter(data[k] for k in range(self.rank, 40, 2))


def nameless(rank, size):
    report = evaluate(model(), DataLoader(Nameless(rank), batch_size=4), METRICS, device="cpu", sharded=True)
    values = {value.name: value.lower is not None for value in report.sections[0].values}
    return [values, report.notes]


def test_samples_of_several_processes_that_are_known_by_nothing_are_not_dealt_to_groups(tmp_path):
    for values, notes in processes(nameless, 2, tmp_path):
        assert values == {"acc": True, "auroc": False, "F1": False, "loss": False}
        assert notes[-1] == (
            "No interval for auroc, F1, loss: samples have no ids, so processes cannot assign them to the same groups; "
            "pass ids= to identify them."
        )


@pytest.mark.exhaustive  # it starts processes
def test_processes_meet_again_after_torchrun_has_restarted_them(tmp_path):
    script = tmp_path / "dies_once.py"
    script.write_text(
        "import os\n"
        "import torch\n"
        "import torch.distributed as dist\n"
        "from assay.evaluation.processes.ranks import process_group\n"
        "with process_group():\n"
        "    total = torch.ones(())\n"
        "    dist.all_reduce(total)\n"
        "    if os.environ['RANK'] == '1' and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "        os.kill(os.getpid(), 9)\n"
        "    dist.barrier()\n"
        "    with open(os.path.join(os.path.dirname(__file__), 'met' + os.environ['RANK']), 'w') as file:\n"
        "        print(int(total), os.environ['TORCHELASTIC_RESTART_COUNT'], file=file)\n"
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--max-restarts=1", str(script)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "connectFullMesh" not in done.stderr
    assert [(tmp_path / f"met{rank}").read_text() for rank in range(2)] == ["2 1\n"] * 2
