"""The point of the project as two tables: the same samples fed in many ways, and what running float32 sums say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import torch
from torch import Tensor

from assay.devices import available
from assay.meter import Meter
from assay.metrics import ConcordanceCorrCoef, ConfusionMatrix
from assay.report import Section, Table

Batches: TypeAlias = list[tuple[Tensor, Tensor]]

LAST_FLOAT32_COUNT = 2**24  # from here on, adding 1 to a float32 does not change it
MORE = 1000
OFFSET = 1e6


def same_bits(preds: Tensor, target: Tensor) -> Section:
    """Feed the same samples in other batches, orders, pieces, dtypes and devices, and compare the bits."""
    preds, target = preds.to(torch.bfloat16).float(), target.to(torch.bfloat16).float()
    exact = float(exact_concordance(preds, target))
    rows: list[tuple[str, str, str, float]] = []
    for name, pieces in ways(preds, target):
        running = float32_concordance(batch for piece in pieces for batch in piece)
        rows.append((name, assay_concordance(pieces).hex(), short_hex(running), running - exact))
    answers = [len({row[column] for row in rows}) for column in (1, 2)]
    note = (
        f"Concordance of the same {len(preds)} predictions with the truth, fed in {len(rows)} ways. "
        f"assay gave {_answers(answers[0])}; running sums in float32 gave {_answers(answers[1])}. "
        f"The exact value, computed in fractions and rounded once to float64, is {exact.hex()}."
    )
    columns = ("fed", "assay", "float32 sums", "off by")
    table = Table("Concordance, bit by bit", columns, tuple(rows))
    return Section("The same bits, however it is fed", tables=(table,), note=note)


def where_float32_ends(preds: Tensor, target: Tensor) -> Section:
    """Two sums that float32 cannot hold: a count above 2^24, and values far from zero."""
    moved = (preds + OFFSET).float(), (target + OFFSET).float()
    exact = float(exact_concordance(*moved))
    concordance = exact, assay_concordance([[moved]]), float32_concordance([moved])
    counts = LAST_FLOAT32_COUNT + MORE, assay_count(), int(float32_count())
    rows = (
        ("samples counted", *(f"{count:,}" for count in counts)),
        (f"concordance of values + {OFFSET:,.0f}", *map(repr, concordance)),
    )
    note = f"A float32 counter stops at {LAST_FLOAT32_COUNT:,}. Far from zero, float32 sums of squares keep no digit."
    table = Table("Exact, assay, and float32", ("what", "exact", "assay", "float32 sums"), rows)
    return Section("Where float32 ends", tables=(table,), note=note)


def ways(preds: Tensor, target: Tensor) -> Iterator[tuple[str, list[Batches]]]:
    """The same samples, fed differently: a name, and one list of batches for each meter."""
    everything = preds, target
    mixed = torch.randperm(len(preds), generator=torch.Generator().manual_seed(0), device="cpu")
    yield "all at once", [[everything]]
    yield "one by one", [batches(everything, 1)]
    yield "batches of 7", [batches(everything, 7)]
    yield "batches of 64", [batches(everything, 64)]
    yield "backwards, batches of 16", [batches((preds.flip(0), target.flip(0)), 16)]
    yield "shuffled, batches of 32", [batches((preds[mixed], target[mixed]), 32)]
    yield "three meters, merged", [batches(piece, 10) for piece in batches(everything, len(preds) // 3 + 1)]
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        yield f"{dtype}, batches of 48".removeprefix("torch."), [batches((preds.to(dtype), target.to(dtype)), 48)]
    for device in map(str, available()):
        if device != "cpu":
            there = preds.to(device), target.to(device)
            yield f"on {device}", [batches(there, 32)]
            yield f"cpu and {device} in turn", [[(p.to(d), t.to(d)) for (p, t), d in _in_turn(everything, device)]]


def batches(samples: tuple[Tensor, Tensor], size: int) -> Batches:
    """Samples in batches of `size`."""
    return list(zip(*(torch.split(tensor, size) for tensor in samples), strict=True))


def _in_turn(samples: tuple[Tensor, Tensor], device: str) -> Iterator[tuple[tuple[Tensor, Tensor], str]]:
    for i, batch in enumerate(batches(samples, 32)):
        yield batch, ("cpu", device)[i % 2]


def assay_concordance(pieces: list[Batches]) -> float:
    """What assay says: one meter a piece, added."""
    meters = []
    for piece in pieces:
        meter = Meter(value=ConcordanceCorrCoef())
        for preds, target in piece:
            meter.update(preds, target)
        meters.append(meter)
    return float(reduce(add, meters).compute()["value"])


def float32_concordance(batches: Iterable[tuple[Tensor, Tensor]]) -> float:
    """What running sums in float32 say, as metrics commonly keep them."""
    sums = torch.zeros(6, device="cpu")
    for preds, target in batches:
        x, y = preds.cpu().float(), target.cpu().float()
        sums += torch.stack([torch.ones_like(x), x, y, x * x, y * y, x * y]).sum(1)
    return float(_concordance(*sums))


def exact_concordance(preds: Tensor, target: Tensor) -> Fraction:
    """The value in exact rational arithmetic on the given numbers."""
    x, y = (list(map(Fraction, tensor.tolist())) for tensor in (preds, target))
    xx, yy, xy = (sum(a * b for a, b in zip(u, v, strict=True)) for u, v in ((x, x), (y, y), (x, y)))
    return Fraction(_concordance(len(x), sum(x), sum(y), xx, yy, xy))


def _concordance(n: Any, x: Any, y: Any, xx: Any, yy: Any, xy: Any) -> Any:
    """From the number of samples and their sums, as tensors or as fractions: one formula for both."""
    spread = xx / n - (x / n) ** 2 + yy / n - (y / n) ** 2
    return 2 * (xy / n - x / n * (y / n)) / (spread + (x / n - y / n) ** 2)


def assay_count() -> int:
    """2^24 samples in large batches and a thousand one at a time, counted by assay."""
    meter = Meter(matrix=ConfusionMatrix(num_classes=2))
    many, one = torch.zeros(2**20, dtype=torch.int64, device="cpu"), torch.zeros(1, dtype=torch.int64, device="cpu")
    for _ in range(LAST_FLOAT32_COUNT // len(many)):
        meter.update(many, many)
    for _ in range(MORE):
        meter.update(one, one)
    return int(meter.compute()["matrix"].sum())


def float32_count() -> float:
    """The same samples, counted in a float32 tensor."""
    counted = torch.tensor(float(LAST_FLOAT32_COUNT), device="cpu")
    for _ in range(MORE):
        counted += 1
    return float(counted)


def short_hex(value: float) -> str:
    """The bits of a float32 in the notation of `float.hex`, without the zeros that float64 adds."""
    digits, _, exponent = value.hex().partition("p")
    return f"{digits.rstrip('0')}p{exponent}" if exponent else digits


def _answers(count: int) -> str:
    return "one answer" if count == 1 else f"{count} different answers"
