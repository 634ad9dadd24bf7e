"""Updates with `DTensor`: each sample once, whoever has parts of it; what does not add up is refused by name."""

from __future__ import annotations

import functools
import pickle

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor

from assay import Accuracy, ConfusionMatrix, Meter
from assay.decide import first_largest as of_one_process
from assay.language.losses import sharded_losses
from assay.meter.processes.distributed_tensors import first_largest
from assay.metrics import BrierScore, ExactMatch, LogLoss, Mean, Perplexity, Recall
from ranks import processes

ROWS, CLASSES = 11, 5


def scores(dtype=torch.float32):
    """With ties, infinities and zeros of either sign."""
    x = torch.randn(ROWS, CLASSES, generator=torch.Generator().manual_seed(0))
    x[0], x[1], x[2, 3:], x[3, 2:] = 0.5, -torch.inf, torch.inf, x[3].max() + 1
    x[4], x[4, 1::2] = -0.0, 0.0
    return x.to(dtype)


def target():
    return torch.arange(ROWS) % CLASSES


def right():
    return (scores().argmax(1) == target()).double().mean().item()


def told(act):
    try:
        return act()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def counted(mesh, placements, y=None, group=None, **more):
    """The value of all processes, and how many samples there were."""

    def act():
        meter = Meter(acc=Accuracy(num_classes=CLASSES), matrix=ConfusionMatrix(num_classes=CLASSES), **more)
        meter.update(distribute_tensor(scores(), mesh, placements), target() if y is None else y)
        total = pickle.loads(pickle.dumps(meter)).sync(group)
        return [total.compute()["acc"].item(), total.rows, int(total.compute()["matrix"].sum())]

    return told(act)


def found_and_right(mesh, dtype):
    """Whether the largest scores and the losses are those of one process."""
    x, words = scores(dtype), torch.cat([torch.randn(ROWS, CLASSES), scores(torch.float32)]).to(dtype)
    x[5, 2] = torch.nan
    part = distribute_tensor(x, mesh, [Shard(1)])
    start = -(-CLASSES // mesh.size()) * mesh.get_local_rank()
    best = first_largest(part.to_local(), start, CLASSES, [mesh.get_group()])
    words = words.view(2, ROWS, CLASSES)[:, 5:]
    labels = torch.arange(2 * (ROWS - 5)).view(2, -1) % CLASSES
    expected = -words.double().log_softmax(2).gather(2, labels[..., None])[..., 0]
    losses = [
        sharded_losses(distribute_tensor(words, mesh, [placement]), labels)
        for placement in (Shard(2), Shard(1), Shard(0), Replicate())
    ]
    return [
        torch.equal(best, of_one_process(x)),
        all(torch.allclose(each.double(), expected, rtol=1e-6, atol=1e-6) for each in losses),
        all(torch.equal(each, losses[0]) for each in losses),
    ]


def words(dtype=torch.float32):
    """Logits of some tokens of each text, with ties."""
    x = torch.randn(ROWS, 3, CLASSES, generator=torch.Generator().manual_seed(2))
    x[0], x[1, 1, :2], x[2, :, ::2] = 0.5, -torch.inf, 1.0
    return x.to(dtype)


LABELS = {
    "acc": Accuracy(num_classes=CLASSES),
    "top2": Accuracy(num_classes=CLASSES, top_k=2),
    "top4": Recall(num_classes=CLASSES, top_k=4, ignore_index=3),
    "hits": ExactMatch(num_classes=CLASSES),
}
OF_TOKENS = {name: each for name, each in LABELS.items() if name != "hits"}
LOSSES = {"log loss": LogLoss(num_classes=CLASSES, logits=True, ignore_index=1)}
PERPLEXITY = {"perplexity": Perplexity(ignore_index=1)}
PARTS = {
    "classes": ([Shard(1)], scores, {**LABELS}),
    "float64": ([Shard(1)], lambda: scores(torch.float64), {**LABELS}),
    "bfloat16": ([Shard(1)], lambda: scores(torch.bfloat16), {**LABELS}),
    "losses": ([Shard(1)], lambda: words()[:, 0], {**LABELS, **LOSSES, **PERPLEXITY}),
    "words": ([Shard(2)], words, PERPLEXITY),
    "tokens": ([Shard(1)], words, PERPLEXITY),
    "classes of tokens": ([Shard(1)], lambda: words().movedim(2, 1), {**LABELS, **LOSSES}),
    "tokens of classes": ([Shard(2)], lambda: words().movedim(2, 1), {**OF_TOKENS, **LOSSES}),
}
"""For parts of some kind: placements, scores, and metrics of them."""


def of_parts_and_of_one(mesh, placements, make, metrics):
    """Whether all that is counted of labels is equal, the largest difference of other values, and the samples."""

    def act():
        x = make()
        y = torch.arange(x.numel() // CLASSES).view(ROWS, *x.shape[1:-1] if "perplexity" in metrics else x.shape[2:])
        y, weights = y % CLASSES, torch.arange(ROWS) / 4
        meter, one = Meter(**metrics, weighted=True), Meter(**metrics, weighted=True)
        for k in (0, 4):  # the second batch is not the first one's size
            part = slice(k, 4 if not k else None)
            meter.update(distribute_tensor(x[part], mesh, placements), y[part], weights=weights[part])
            one.update(x[part], y[part], weights=weights[part])
        total = meter.sync()
        found, expected = total.compute(), one.compute()
        labels = [name for name in metrics if name in LABELS]
        near = max(((found[name] - expected[name]).abs().item() for name in metrics if name not in labels), default=0)
        return [all(torch.equal(found[name], expected[name]) for name in labels), near, total.rows]

    return told(act)


def on_two(rank, size):
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    own = dist.new_group([0])
    half = scores().tensor_split([6])[rank], target().tensor_split([6])[rank]
    unsynced = Meter(acc=Accuracy(num_classes=CLASSES))
    unsynced.update(distribute_tensor(scores(), mesh, [Shard(0)]), target())

    def partial():
        meter = Meter(mean=Mean())
        meter.update(DTensor.from_local(torch.ones(4), mesh, [Partial()], run_check=False))

    def of_all_scores():
        meter = Meter(acc=Accuracy(num_classes=CLASSES), brier=BrierScore(num_classes=CLASSES, logits=True))
        meter.update(distribute_tensor(scores(), mesh, [Shard(1)]), target())

    def of_parts():
        meter = Meter(acc=Accuracy(num_classes=CLASSES))
        meter.update(distribute_tensor(scores(), mesh, [Shard(0)]), half[1])
        return meter.sync().compute()["acc"].item()

    return {
        "samples": counted(mesh, [Shard(0)]),
        "replicated": counted(mesh, [Replicate()]),
        "classes": counted(mesh, [Shard(1)]),
        "both": counted(mesh, [Shard(0)], distribute_tensor(target(), mesh, [Shard(0)])),
        "over mesh": counted(mesh, [Shard(0)], group=mesh),
        "own target": told(of_parts),
        "other placements": counted(mesh, [Shard(0)], distribute_tensor(target(), mesh, [Replicate()])),
        "partial": told(partial),
        "all scores": told(of_all_scores),
        **{f"of parts {name}": of_parts_and_of_one(mesh, *each) for name, each in PARTS.items()},
        "unsynced": told(unsynced.compute),
        "too few": told(lambda: unsynced.sync(own)) if rank == 0 else None,
        **{str(dtype): found_and_right(mesh, dtype) for dtype in (torch.float32, torch.bfloat16, torch.float64)},
    }


def on_four(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    part = functools.partial(counted, mesh)
    return {
        "samples x classes": part([Shard(0), Shard(1)]),
        "samples x samples": part([Shard(0), Shard(0)]),
        "samples x replicated": part([Shard(0), Replicate()], group=mesh),
        "of a part": part([Shard(0), Replicate()], group=mesh["dp"]),
        "on its own mesh": counted(mesh["tp"], [Shard(1)], group=mesh["tp"]),
        "tokens x words": of_parts_and_of_one(mesh, [Shard(1), Shard(2)], words, PERPLEXITY),
        "texts x words": of_parts_and_of_one(mesh, [Shard(0), Shard(2)], words, PERPLEXITY),
    }


def test_each_sample_of_a_distributed_tensor_is_counted_once(tmp_path):
    for found in processes(on_two, 2, tmp_path):
        for name in ("samples", "replicated", "classes", "both", "over mesh"):
            assert found[name] == [right(), ROWS, ROWS], name
        assert found["own target"] == right()
        assert all(found[str(dtype)] == [True] * 3 for dtype in (torch.float32, torch.bfloat16, torch.float64))
        assert "target: got a DTensor with the placements R, expected the samples of preds" in found["other placements"]
        assert "preds: got a DTensor with the placements P" in found["partial"]
        assert "sharded over dimension 1, expected all scores of a sample for brier:" in found["all scores"]
        for name in PARTS:
            exact, near, rows = found[f"of parts {name}"]
            assert (exact, rows) == (True, ROWS), name
            assert near < 1e-6, name
        assert "StateError: compute: got a part of the samples of ranks 0, 1" in found["unsynced"]
        assert found["too few"] is None or "got ranks 0, without 1, expected all of ranks 0, 1" in found["too few"]


@pytest.mark.exhaustive
def test_dimensions_of_a_mesh_add_up(tmp_path):
    for found in processes(on_four, 4, tmp_path):
        for name in ("samples x classes", "samples x samples", "samples x replicated", "on its own mesh"):
            assert found[name] == [right(), ROWS, ROWS], name
        for name in ("tokens x words", "texts x words"):
            exact, near, rows = found[name]
            assert (exact, rows) == (True, ROWS), name
            assert near < 1e-6, name
        assert "expected all of ranks 0, 1, 2, 3, which counted parts of the same DTensor" in found["of a part"]
