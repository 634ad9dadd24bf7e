"""Models that the tests of quantization share: small, and with all that plans must tell apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn

WIDTH, VOCABULARY = 256, 96


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(self.norm(x))
        return x + self.down(nn.functional.silu(self.up(x)))


class LanguageModel(nn.Module):
    """Token ids (B, T) in, logits (B, T, 96) out; ``gate`` has a width that groups of 128 do not divide."""

    def __init__(self, *, tied: bool = False, blocks: int = 2) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))
        self.squeeze, self.gate = nn.Linear(WIDTH, 100), nn.Linear(100, WIDTH)
        self.head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.head.weight = self.embedding.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x + self.gate(self.squeeze(x)))


def language_model(*, tied: bool = False, blocks: int = 2, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """The model with the same random weights each time, ready to be run."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(0)
        return LanguageModel(tied=tied, blocks=blocks).to(dtype).eval()


def some_ids() -> Tensor:
    """Six tokens in two rows."""
    return torch.tensor([[1, 2, 3], [40, 50, 95]])
