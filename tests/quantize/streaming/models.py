"""A small model and its recipe, and the contents of a folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(64, 128, dtype=torch.bfloat16)
        self.down = nn.Linear(128, 64, bias=False, dtype=torch.bfloat16)
        self.norm = nn.LayerNorm(64, dtype=torch.bfloat16)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)))


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(50, 64, dtype=torch.bfloat16)
        self.layers = nn.Sequential(*(Block() for _ in range(3)))
        self.head = nn.Linear(64, 50, bias=False, dtype=torch.bfloat16)

    def forward(self, x):
        return self.head(self.layers(self.embed_tokens(x)))


RECIPE = {"head": "skip", "up": "int4:g32", "down": "int8"}


def contents(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}
