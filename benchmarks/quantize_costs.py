"""What each kernel costs beside the dense layer on this CPU: written where plans read it.

OMP_NUM_THREADS=1 python -m benchmarks.quantize_costs "one thread of a Xeon with AVX512 and AMX"
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

import assay.quantize
from assay._atomic import write_text
from assay.quantize import Scheme, quantize_weight
from assay.quantize.kernels import KERNELS
from assay.quantize.planning.costs import ROWS

FILE = Path(assay.quantize.__file__).parent / "planning" / "costs.toml"
SHAPE = (4096, 4096)
SCHEMES = ("int2", "int3", "int4", "int5", "int6", "int7", "int8", "int8:dynamic")
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
TOO_SLOW = 4  # times the dense layer at one row: no plan takes such a kernel, and at many rows it takes minutes
HEAD = """\
# What a kernel costs beside the dense layer of the same dtype: time over time, at 1, 32 and 512 rows of activations.
# By dtype of the activations, scheme and kernel. Written by: python -m benchmarks.quantize_costs
"""


def best(call: Callable[[], object], rounds: int = 5) -> float:
    """Seconds of this thread: the least of a few rounds."""
    call()
    found = []
    for _ in range(rounds):
        start = time.thread_time()
        call()
        found.append(time.thread_time() - start)
    return min(found)


def of_scheme(text: str, weight: Tensor, inputs: list[Tensor], dense: list[float]) -> dict[str, list[float]]:
    """Kernel -> time over that of the dense layer, at each number of rows."""
    scheme, dtype, found = Scheme.parse(text), inputs[0].dtype, {}
    integers = quantize_weight(weight, scheme)
    for kernel in KERNELS.values():
        if kernel.why_not("cpu", dtype, scheme, SHAPE):
            continue
        packed = kernel.pack(integers, dtype)
        few = best(partial(kernel.matmul, inputs[0], packed)) / dense[0]
        if kernel.name == "dequantize" or few <= TOO_SLOW:
            more = zip(inputs[1:], dense[1:], strict=True)
            found[kernel.name] = [few, *(best(partial(kernel.matmul, x, packed), 3) / base for x, base in more)]
    return found


def main(machine: str) -> None:
    """Measure everything and write the file."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    weight = torch.randn(SHAPE) * 0.02
    lines = [f'where = "{machine}, {SHAPE[0]} × {SHAPE[1]}, torch {torch.__version__.partition("+")[0]}"']
    for dtype in DTYPES:
        name = str(dtype).removeprefix("torch.")
        inputs = [torch.randn(rows, SHAPE[1]).to(dtype) for rows in ROWS]
        lines.append(f"\n[times.{name}]")
        dense = [best(partial(F.linear, x, weight.to(dtype))) for x in inputs]
        for scheme in SCHEMES:
            times = of_scheme(scheme, weight, inputs, dense).items()
            cells = ", ".join(f"{kernel} = [{', '.join(f'{each:.1f}' for each in row)}]" for kernel, row in times)
            lines.append(f'"{scheme}" = {{ {cells} }}')
            print(name, lines[-1], flush=True)
    write_text(FILE, HEAD + "\n".join(lines) + "\n")
    print(FILE)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "one thread")
