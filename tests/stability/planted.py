"""Tiny models that depend on what should not matter, each with one planted cause, and sound ones."""

from __future__ import annotations

import time

import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 6
"""Of inputs: 6 numbers, or 6 tokens of 11."""


class Planted(nn.Module):
    """Two layers with something wrong between them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, 10), nn.Linear(10, 3)

    def forward(self, x):
        return self.last(self.middle(torch.tanh(self.first(x))))

    def middle(self, x):
        raise NotImplementedError


class DropoutInTraining(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def train(self, mode=True):
        super().train(mode)
        self.drop.training = True  # an eval() that is overridden
        return self

    def middle(self, x):
        return self.drop(x)


class FunctionalDropout(Planted):
    def middle(self, x):
        return F.dropout(x, 0.5)


class Noise(Planted):
    def middle(self, x):
        return x + 0.01 * torch.randn_like(x)


class OwnGenerator(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.generator = torch.Generator().manual_seed(0)

    def middle(self, x):
        return x + 0.1 * torch.randn(x.shape, generator=self.generator, dtype=x.dtype)


class PythonNoise(Planted):
    def middle(self, x):
        import random

        return x * random.random()


class ModuleInAList(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.branches = [nn.Dropout(0.5)]

    def middle(self, x):
        return self.branches[0](x)


class NormInADictionary(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.branches = {"norm": nn.BatchNorm1d(10)}

    def middle(self, x):
        return self.branches["norm"](x)


class NormWithoutStatistics(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(10, track_running_stats=False)

    def middle(self, x):
        return self.norm(x)


class SoftmaxOverTheBatch(Planted):
    def middle(self, x):
        return x.softmax(0)


class Standardized(Planted):
    def middle(self, x):
        return x - x.mean(0)


class CumulativeSum(Planted):
    def middle(self, x):
        return x.cumsum(0) / 10


class TopKOverTheBatch(Planted):
    def middle(self, x):
        least = x.topk(min(5, len(x)), dim=0).values[-1]
        return torch.where(x >= least, x, 0.0)


class ScaledByTheLargest(Planted):
    def middle(self, x):
        return x / x.abs().amax()


class Counter(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(()))

    def middle(self, x):
        self.count += 1
        return x * (1 + 0.1 * self.count)


class CacheByShape(Planted):
    def __init__(self) -> None:
        super().__init__()
        self.cache = {}

    def middle(self, x):
        if x.shape not in self.cache:
            self.cache[x.shape] = x.sum(1, keepdim=True)
        return x + self.cache[x.shape]


class HiddenStateKept(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn, self.last = nn.GRU(2, 8, batch_first=True), nn.Linear(8, 3)
        self.hidden = None

    def forward(self, x):
        steps = x.reshape(len(x), 3, 2)
        if self.hidden is None or self.hidden.shape[1] != len(x):
            self.hidden = None
        outputs, self.hidden = self.rnn(steps, self.hidden)
        return self.last(outputs[:, -1])


class InPlace(Planted):
    def forward(self, x):
        return self.last(self.first(x.mul_(0.5)))


class FirstRowIsSpecial(Planted):
    def middle(self, x):
        place = torch.arange(len(x), device=x.device, dtype=x.dtype)
        return x + 0.1 * place[:, None].clamp(max=1)


class OtherBranchForOne(Planted):
    def middle(self, x):
        return torch.relu(x) if len(x) == 1 else torch.tanh(x)


class DtypeOfTheData(Planted):
    def middle(self, x):
        return (x.half().to(x.dtype) if len(x) < 8 else x) * 1.5


class HalfSums(Planted):
    def middle(self, x):
        return x.half().cumsum(1).to(x.dtype)


class Cancellation(Planted):
    def middle(self, x):
        return ((x + 1e5) ** 2 - 1e10) / 1e5


class ShuffledScatter(Planted):
    def middle(self, x):
        wide = torch.cat([x * k for k in range(1, 40)], 1)
        order = torch.randperm(wide.shape[1])
        total = torch.zeros(len(x), 10, dtype=x.dtype)
        return torch.tanh(total.index_add(1, order % 10 * 0, wide[:, order]) / 50) + x


class TimeDependent(Planted):
    def middle(self, x):
        return x * (1 + time.perf_counter_ns() % 1009)


class HashDependent(Planted):
    def middle(self, x):
        return x + id(self) // 16 % 1009


class LeakingMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.last = nn.Embedding(11, 8), nn.Linear(8, 3)

    def forward(self, tokens, mask):
        return self.last(self.tokens(tokens).mean(1))


class LeakingAttention(nn.Module):
    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        self.tokens, self.attention = nn.Embedding(11, 8), nn.MultiheadAttention(8, 2, batch_first=True)
        self.last, self.masked = nn.Linear(8, 3), masked

    def forward(self, tokens, mask):
        x = self.tokens(tokens)
        x, _ = self.attention(x, x, x, key_padding_mask=mask == 0 if self.masked else None)
        return self.last((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


class MaskedMean(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.last = nn.Embedding(11, 8), nn.Linear(8, 3)

    def forward(self, tokens, mask):
        x = self.tokens(tokens) * mask[..., None]
        return self.last(x.sum(1) / mask.sum(1, keepdim=True))


class Bag(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.last = nn.EmbeddingBag(11, 8, padding_idx=0), nn.Linear(8, 3)

    def forward(self, tokens):
        return self.last(self.bag(tokens))


class Recurrent(nn.Module):
    def __init__(self, kind) -> None:
        super().__init__()
        self.cells, self.last = kind(2, 8, num_layers=2, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.last(self.cells(x.reshape(len(x), 3, 2))[0][:, -1])


class CachedTable(Planted):
    """A cache that changes no output."""

    def __init__(self) -> None:
        super().__init__()
        self.table = None

    def middle(self, x):
        if self.table is None:
            self.table = torch.linspace(0, 1, 10, device=x.device).to(x.dtype)
        return x * self.table


class Encoder(nn.Module):
    def __init__(self, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.tokens, self.last = nn.Embedding(11, 8), nn.Linear(8, 3)
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, tokens, mask):
        x = self.encoder(self.tokens(tokens), src_key_padding_mask=mask == 0)
        return self.last((x * mask[..., None]).sum(1) / mask.sum(1, keepdim=True))


class Image(nn.Module):
    def __init__(self, norm, depthwise: bool = False) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 3, padding=1), norm(8), nn.ReLU(),
            nn.Conv2d(8, 8, 3, groups=8 if depthwise else 1), norm(8), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
            nn.Linear(8, 3),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x.reshape(len(x), 1, WIDTH, WIDTH))
