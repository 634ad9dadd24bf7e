"""Models whose parts lie on several processes: the right number, or a refusal that says what was found."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import TensorDataset

from assay import Accuracy, evaluate
from ranks import processes

CLASSES = 3


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, CLASSES))


def tensor_parallel(mesh):
    return parallelize_module(network(), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


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
    """Each process has half of the columns, and adds the products up itself."""

    def __init__(self):
        super().__init__()
        self.inner = network()

    def forward(self, x):
        dist.all_reduce(out := self.inner(x) / dist.get_world_size())
        return out


class KeepsGroup(HandWritten):
    def __init__(self):
        super().__init__()
        self.group = dist.group.WORLD


class Hides:
    """Nothing shows that it calls a module."""

    __slots__ = ("inner",)

    def __init__(self, inner):
        self.inner = inner

    def __call__(self, x):
        return self.inner(x)


def refusals(rank, size):
    parallel = tensor_parallel(init_device_mesh("cpu", (size,), mesh_dim_names=("tp",)))
    sharded = fully_shard(network())
    models = {
        "tensor parallel": parallel,
        "in a function": lambda x: parallel(x),
        "hidden": Hides(parallel),
        "sharded": sharded,
        "hand-written": HandWritten(),
        "keeps": KeepsGroup(),
    }
    metric = Accuracy(num_classes=CLASSES)
    return {
        name: told(lambda each=each: evaluate(each, samples(9), metric, device="cpu")) for name, each in models.items()
    }


def test_a_model_whose_sharding_is_not_understood_is_refused_on_all_processes(tmp_path):
    for texts in processes(refusals, 2, tmp_path):
        assert texts["tensor parallel"].startswith(
            "ConfigError: model: got a model that is shared among processes: tp ("
        )
        assert texts["in a function"] == texts["tensor parallel"]
        assert "a forward that communicates with other processes (aten.linear" in texts["hidden"]
        assert "shared among processes: fully_shard (" in texts["sharded"]
        assert "a forward that communicates with other processes (c10d.allreduce_.default)" in texts["hand-written"]
        assert "got KeepsGroup.group, a ProcessGroup" in texts["keeps"]
