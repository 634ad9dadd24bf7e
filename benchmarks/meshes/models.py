"""Tiny models whose parts lie on several processes, and samples whose right values are known without any library."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.fsdp.wrap import always_wrap_policy
from torch.distributed.tensor import Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import Dataset, IterableDataset, TensorDataset

FEATURES, HIDDEN, CLASSES = 6, 24, 12
WORDS, WINDOW = 48, 8
BATCH = 8


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(FEATURES, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))


def samples(count: int) -> TensorDataset:
    """The network's own predictions as targets, every fifth of them replaced."""
    x = torch.randn(count, FEATURES, generator=torch.Generator().manual_seed(1))
    y = network()(x).argmax(1)
    y[::5] = (y[::5] + 1) % CLASSES
    return TensorDataset(x, y)


def right(count: int) -> float:
    """The share of targets that were not replaced."""
    return 1 - -(-count // 5) / count


def mesh(shape: tuple[int, ...], names: str) -> DeviceMesh:
    return init_device_mesh("cpu", shape, mesh_dim_names=tuple(names.split()))


def tensor_parallel(on: DeviceMesh) -> nn.Module:
    return parallelize_module(network(), on, {"0": ColwiseParallel(), "2": RowwiseParallel()})


def vocabulary_parallel(on: DeviceMesh) -> nn.Module:
    """Its logits are a `DTensor` of which each process has some classes."""
    plan = {"0": ColwiseParallel(output_layouts=Replicate()), "2": ColwiseParallel(use_local_output=False)}
    return parallelize_module(network(), on, plan)


def fully_sharded(on: DeviceMesh | None = None, model: nn.Module | None = None) -> nn.Module:
    model = network() if model is None else model
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=on)
    return fully_shard(model, mesh=on)


def sharded_and_parallel(shape: tuple[int, ...], names: str, over: str, along: str) -> nn.Module:
    on = mesh(shape, names)
    return fully_sharded(on[tuple(over.split())] if " " in over else on[over], tensor_parallel(on[along]))


def parallel_on_two() -> nn.Module:
    return tensor_parallel(mesh((2,), "tp"))


def fsdp1(**options: object) -> nn.Module:
    return FullyShardedDataParallel(network(), device_id=torch.device("cpu"), **options)


def wrapped_layers(**options: object) -> nn.Module:
    return fsdp1(auto_wrap_policy=always_wrap_policy, **options)


class HandWritten(nn.Module):
    """The members of a group each compute a part, and add the parts up by themselves."""

    def __init__(self, group: dist.ProcessGroup | None = None) -> None:
        super().__init__()
        self.inner, self.group = network(), group

    def forward(self, x: Tensor) -> Tensor:
        out = self.inner(x) / dist.get_world_size(self.group)
        dist.all_reduce(out, group=self.group)
        return out


class Experts(nn.Module):
    """Sends rows to the process of their expert and back; processes may have different numbers of rows."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x: Tensor) -> Tensor:
        size = dist.get_world_size()
        sent = torch.tensor([len(part) for part in x.tensor_split(size)])
        received = torch.empty_like(sent)
        dist.all_to_all_single(received, sent)
        here = x.new_empty(int(received.sum()), FEATURES)
        dist.all_to_all_single(here, x.contiguous(), received.tolist(), sent.tolist())
        back = x.new_empty(len(x), CLASSES)
        dist.all_to_all_single(back, self.inner(here), sent.tolist(), received.tolist())
        return back


class Stream(IterableDataset):
    """Some of the batches of 101 samples."""

    def __init__(self, start: int, stop: int) -> None:
        self.batches = range(start, stop)

    def __iter__(self):
        data = samples(101)
        return (data[BATCH * k : BATCH * k + BATCH] for k in self.batches)


class Broken(Dataset):
    """101 samples; something happens when one of them is loaded."""

    def __init__(self, sample: int, act) -> None:
        self.data, self.sample, self.act = samples(101), sample, act

    def __len__(self) -> int:
        return 101

    def __getitem__(self, k: int):
        x, y = self.data[k]
        return self.act(x, y) if k == self.sample else (x, y)


class Language(nn.Module):
    """Logits of the next token for each token."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.words = nn.Embedding(WORDS, HIDDEN)
        self.inner = nn.Linear(HIDDEN, HIDDEN)
        self.head = nn.Linear(HIDDEN, WORDS)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(torch.tanh(self.inner(self.words(ids))))


class Attentive(Language):
    """The same, where each token looks at those before it, too."""

    def forward(self, ids: Tensor, group: dist.ProcessGroup | None = None) -> Tensor:
        """Logits of the tokens of this process; with a group each one has a part, in order, and gathers the keys."""
        x = self.words(ids)
        keys, first = x, 0
        if group is not None:
            parts = [torch.empty_like(x) for _ in range(dist.get_world_size(group))]
            dist.all_gather(parts, x.contiguous(), group=group)
            keys, first = torch.cat(parts, 1), dist.get_rank(group) * ids.shape[1]
        here, all_ = first + torch.arange(ids.shape[1]), torch.arange(keys.shape[1])
        scores = (x @ keys.movedim(1, 2)).masked_fill(here[:, None] < all_, -torch.inf)
        return 8 * self.head(torch.tanh(self.inner(scores.softmax(-1) @ keys)))  # so that what it looks at matters


def tokens(count: int = 331) -> Tensor:
    return torch.randint(WORDS, (count,), generator=torch.Generator().manual_seed(4))


def right_perplexity() -> float:
    """Each token after the one before it: the network sees no other."""
    ids = tokens()
    with torch.no_grad():
        logs = Language().double()(ids[None, :-1])[0].log_softmax(-1)
    return float((-logs.gather(1, ids[1:, None]).mean()).exp())


def right_attentive_perplexity() -> float:
    """Each token after those before it in its window."""
    ids, model = tokens(), Attentive().double()
    with torch.no_grad():
        logs = [model(part[None])[0].log_softmax(-1) for part in ids[:-1].split(WINDOW)]
    return float((-torch.cat(logs).gather(1, ids[1:, None]).mean()).exp())


def language_parallel(on: DeviceMesh, plan: dict[str, object]) -> nn.Module:
    return parallelize_module(Language(), on, plan)
