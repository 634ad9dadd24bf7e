"""Calls operators with odd arguments on a device, and says on a line of its own which one comes next.

``odd_arguments.py DEVICE ENGINE < names.json``; the device ``cpu`` is not pretended. An operator that takes more than
``CPU_S`` seconds of the processor, or waits for ``WAIT_S`` seconds, ends the process as a crash does.
"""

from __future__ import annotations

import contextlib
import json
import random
import resource
import signal
import sys
import warnings

import torch

DRAWS = 4
CPU_S = 30
WAIT_S = 1800
SHAPES = ((), (0,), (1,), (3,), (2, 3), (0, 2), (2, 1, 3), (1, 2, 2, 3))
DTYPES = (torch.float32, torch.float32, torch.int64, torch.bool, torch.float16, torch.complex64, torch.uint8)
NUMBERS = (0, 1, -1, 2, 3, 0.5)
NAMED = {  # a number that names none of these indexes beyond a table of torch, which ends the process on the CPU, too
    "ScalarType": (*dict.fromkeys(DTYPES), torch.float64, torch.complex32),
    "Layout": (torch.strided, torch.sparse_coo),
    "MemoryFormat": (torch.contiguous_format, torch.channels_last, torch.preserve_format),
}


def tensor(draw: random.Random, device: torch.device) -> torch.Tensor:
    shape, dtype = draw.choice(SHAPES), draw.choice(DTYPES)
    made = (torch.arange(float(torch.Size(shape).numel())).reshape(shape) % 3).to(dtype)
    made = made.to(device if draw.random() < 0.8 else "cpu")
    return made.mT if made.dim() > 1 and draw.random() < 0.3 else made


def value(kind: str, draw: random.Random, device: torch.device):
    if kind.startswith("Optional"):
        return None if draw.random() < 0.5 else value(kind[9:-1], draw, device)
    if kind.startswith("List"):
        return [value(kind[5:-1], draw, device) for _ in range(draw.choice((0, 1, 2, 2, 3)))]
    if kind in NAMED:
        return draw.choice(NAMED[kind])
    if kind == "Tensor":
        return tensor(draw, device)
    if kind in ("int", "SymInt", "DeviceIndex"):
        return draw.choice((0, 1, -1, 2, 3))
    if kind in ("number", "float"):
        return float(draw.choice((0, 1, -1, 0.5))) if kind == "float" else draw.choice(NUMBERS)
    if kind == "bool":
        return draw.random() < 0.5
    if kind == "Device":
        return device
    return draw.choice(("sum", "mean", "none", "ij")) if kind == "str" else None


def call(name: str, device: torch.device) -> None:
    namespace, _, rest = name.partition("::")
    short, _, overload = rest.partition(".")
    op = getattr(getattr(getattr(torch.ops, namespace), short), overload or "default")
    for number in range(DRAWS):
        draw = random.Random(f"{name} {number}")
        arguments = {each.name: value(str(each.real_type), draw, device) for each in op._schema.arguments}
        with contextlib.suppress(Exception):
            op(**arguments)


def limit() -> None:
    """From here on the process has ``CPU_S`` seconds of the processor, and ``WAIT_S`` seconds on the clock."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    until = int(used.ru_utime + used.ru_stime) + CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (until, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    signal.alarm(WAIT_S)


def main(kind: str, engine: str) -> None:
    from assay.pretend import pretend

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    names = json.load(sys.stdin)
    with contextlib.nullcontext() if kind == "cpu" else pretend(kind, engine=engine):
        for name in names:
            print(name, flush=True)
            limit()
            call(name, torch.device(kind))


if __name__ == "__main__":
    main(*sys.argv[1:])
