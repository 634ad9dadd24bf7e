"""A small language model, trained on the standard library's sources, is quantized, and what that costs is measured.

The KL divergence of the outputs tells schemes apart; perplexity, on a text as short as this one, does not always.

python examples/quantize_language_model.py --seconds 2 --bytes 1200
"""

from __future__ import annotations

import argparse
import copy
import sysconfig
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay.language import generate, perplexity
from assay.quantize import plan
from assay.quantize.analysis import DataSpec, measure, recipe_for_budget, sweep

WIDTH, HEADS, LAYERS, CONTEXT = 128, 4, 2, 128


class Block(nn.Module):
    """Attention and a gated feed-forward, as in Llama."""

    def __init__(self) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        rows, length, _ = x.shape
        q, k, v = self.qkv(self.norm_1(x)).view(rows, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, WIDTH))
        h = self.norm_2(x)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class ByteModel(nn.Module):
    """The next byte, from at most `CONTEXT` before it."""

    max_positions = CONTEXT

    def __init__(self) -> None:
        super().__init__()
        self.bytes, self.places = nn.Embedding(256, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(LAYERS)))
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 256, bias=False)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.bytes(ids) + self.places.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


def sources() -> tuple[str, str]:
    """Text to train on, and other text to measure on."""
    files = sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))
    texts = [path.read_text("utf-8", errors="ignore") for path in files]
    return "".join(text for k, text in enumerate(texts) if k % 10), "".join(texts[::10])


def trained(text: str, seconds: float, seed: int = 0) -> ByteModel:
    """A model after so many seconds of training."""
    torch.manual_seed(seed)
    model, data = ByteModel(), torch.tensor(list(text.encode()))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < seconds:
        starts = torch.randint(len(data) - CONTEXT - 1, (16,))
        batch = torch.stack([data[k : k + CONTEXT + 1] for k in starts])
        loss = F.cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steps += 1
    print(f"trained for {steps} steps of {16 * CONTEXT:,} bytes, loss {loss.item():.3f}")
    return model.eval()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=40)
    parser.add_argument("--bytes", type=int, default=6000, help="to measure on")
    parser.add_argument("--out", type=Path, help="folder for the reports")
    asked = parser.parse_args()

    train, held_out = sources()
    model = trained(train, asked.seconds)
    text = held_out[: asked.bytes]
    data_spec = DataSpec(device="cpu", window=CONTEXT, stride=CONTEXT // 2)
    before = perplexity(model, text, window=CONTEXT, stride=CONTEXT // 2, device="cpu")
    print(", ".join(f"{value.name} {value.value:.4f}" for value in before.sections[0].values))

    schemes = sweep(model, text, ["int8", "int6", "int5", "int4:g32", "int4", "int3:g32", "int3"], data_spec=data_spec)
    schemes.report.show()
    chosen = recipe_for_budget(
        model, text, "4.5bits", schemes=["int3:g32", "int4:g32", "int5", "int8"], data_spec=data_spec
    )
    print(chosen.report.sections[0].note)

    int4 = plan(copy.deepcopy(model), "int4", device="cpu")
    after = int4.apply(copy.deepcopy(model))
    report = measure(model, after, text, data_spec=data_spec, speed=(1,))
    for value in report.sections[0].values:
        print(f"{value.name:20} {value.value:10.5f}   [{value.lower:.5f}, {value.upper:.5f}]")
    print(f"{len(report.sections[0].samples)} samples, each a window of the text")
    for name, each in (("before", model), ("int4", after)):
        said = generate(each, "def __init__(self", 40, device="cpu")
        print(f"{name}: {str(said)!r}, {said.tokens_per_second:.0f} tokens a second")
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        for name, found in (("sweep", schemes.report), ("budget", chosen.report), ("int4", report)):
            print(found.to_html(asked.out / f"{name}.html"))


if __name__ == "__main__":
    main()
