"""A Llama that transformers has shared among processes by its own plan."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import TensorDataset

from benchmarks.meshes.configuration import Configuration, evaluated
from benchmarks.meshes.models import BATCH, CLASSES, right


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


CASES = (
    of_transformers('tp_plan="auto"', 2, 64),
    of_transformers('tp_plan="auto"', 2, 101),
    of_transformers("FSDP2 × TP 2 × 2", 4, 101, fsdp_size=2, tp_size=2),
)
