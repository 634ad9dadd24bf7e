"""A quantized linear layer beside the dense one, torch's packed kernels and torchao, from one row to many."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from assay.quantize import QuantizedLinear, Scheme, quantize_weight
from assay.quantize.kernels import KERNELS
from benchmarks.harness import Candidate, Cost, Table, measure, save, titled

ROWS = (1, 4, 8, 16, 32, 64, 512)
SCHEMES = ("int8", "int4", "int4:g32", "int3:g64")
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
SHAPE = (4096, 4096)
PACKED = ("int4pack-cpu", "int8pack")
SLOW_FROM = 2  # rows from which torch's packed kernels are not timed in float16 and float32: they take seconds
COPIES = 4
DENSE, OWN = "dense", "assay"


def bandwidth() -> float:
    """Bytes a second that one thread reads: a sum over more memory than any cache holds."""
    memory = torch.ones(2**27, dtype=torch.float32)
    cost = measure({"read": Candidate(lambda _: memory.sum())}, rounds=3)["read"]
    return memory.nbytes / min(cost.rounds)


def torchaos(dense: nn.Linear, scheme: str) -> dict[str, nn.Module]:
    """torchao's layers for a scheme, where it has them for the CPU."""
    try:
        from torchao.prototype.quantization.int4 import PrototypeInt4WeightOnlyConfig
        from torchao.quantization import Int8WeightOnlyConfig, IntxWeightOnlyConfig, quantize_
        from torchao.quantization.granularity import PerGroup
    except ImportError:
        return {}
    group = {"int4": 128, "int4:g32": 32, "int3:g64": 64}.get(scheme, 0)
    configs: dict[str, Callable[[], Any]] = {
        "int8": lambda: Int8WeightOnlyConfig(),
        "int4": lambda: PrototypeInt4WeightOnlyConfig(group_size=group),
        "int4:g32": lambda: PrototypeInt4WeightOnlyConfig(group_size=group),
        "int3:g64": lambda: IntxWeightOnlyConfig(weight_dtype=torch.int3, granularity=PerGroup(group)),
    }
    model = nn.Sequential(copy.deepcopy(dense))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantize_(model, configs[scheme]())
    return {"torchao": model}


def layers(scheme: str, dtype: torch.dtype, shape: tuple[int, int]) -> dict[str, list[Callable[[Tensor], Tensor]]]:
    """What multiplies, by name: several layers of each, more than caches hold, as the layers of a model are."""
    torch.manual_seed(0)
    calls: dict[str, list[Callable[[Tensor], Tensor]]] = {}
    for _ in range(COPIES):
        dense = nn.Linear(shape[1], shape[0], bias=False, dtype=dtype)
        integers = quantize_weight(dense.weight, scheme)
        made: dict[str, Callable[[Tensor], Tensor]] = {DENSE: dense, OWN: QuantizedLinear(integers, dtype=dtype)}
        for name in PACKED:
            if not KERNELS[name].why_not("cpu", dtype, integers.scheme, shape):
                made["torch"] = partial(_multiplied, KERNELS[name], KERNELS[name].pack(integers, dtype))
        for name, call in (made | torchaos(dense, scheme)).items():
            calls.setdefault(name, []).append(call)
    return calls


def candidates(
    calls: dict[str, list[Callable[[Tensor], Tensor]]], dtype: torch.dtype, rows: int, width: int
) -> dict[str, Candidate]:
    """What multiplies so many rows in reasonable time."""
    x = torch.randn(rows, width, dtype=dtype)
    fast = dtype == torch.bfloat16 or rows < SLOW_FROM
    taken = {name: each for name, each in calls.items() if fast or name in (DENSE, OWN)}
    return {name: Candidate(partial(_step, each, x)) for name, each in taken.items()}


def _multiplied(kernel: Any, packed: Any, x: Tensor) -> Tensor:
    return kernel.matmul(x, packed)


def _step(calls: list[Callable[[Tensor], Tensor]], x: Tensor, at: int) -> Tensor:
    return calls[at % len(calls)](x)


def row_of(dtype: torch.dtype, rows: int, costs: dict[str, Cost], floor: float) -> list[str]:
    """Times in ms, and assay's beside the dense layer and beside the best of the others."""
    times = [f"{costs[name].median * 1e3:.2f}" if name in costs else "" for name in (DENSE, "torch", "torchao", OWN)]
    others = [name for name in costs if name != OWN]
    best = min(others, key=lambda name: costs[name].median)
    ratios = [f"{costs[OWN].over(costs[DENSE]):.2f}", f"{costs[OWN].over(costs[best]):.2f} ({best})"]
    over = f"{costs[OWN].median / floor:.1f}" if rows == 1 else ""
    return [str(dtype).removeprefix("torch."), str(rows), *times, *ratios, over]


@torch.no_grad()
def main(small: bool = False) -> int:
    shape, rows_of, rounds = ((64, 256), (1, 8), 1) if small else (SHAPE, ROWS, 5)
    speed, tables, raw = bandwidth(), [], {}
    header = ("activations", "rows", "dense", "torch", "torchao", "assay", "over dense", "over the best", "over floor")
    for scheme in SCHEMES:
        table = Table(titled(f"{scheme}, {shape[0]} × {shape[1]}, ms"), header)
        for dtype in DTYPES:
            calls = layers(scheme, dtype, shape)
            for rows in rows_of:
                costs = measure(candidates(calls, dtype, rows, shape[1]), rounds=rounds, seconds=0.01)
                size = Scheme.parse(scheme).nbytes(shape)
                table.rows.append(row_of(dtype, rows, costs, size / speed))
                raw[f"{scheme} {dtype} {rows}"] = {name: cost.rounds for name, cost in costs.items()}
                print(scheme, *table.rows[-1], flush=True)
        table.notes.append(f"The floor is the time to read the integers and scales once, at {speed / 1e9:.1f} GB/s.")
        tables.append(table)
    save("quantize", tables, raw)
    return 0


if __name__ == "__main__":
    sys.exit(main("--small" in sys.argv))
