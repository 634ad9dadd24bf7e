"""The dtypes that PyTorch's operator database declares for a device, against what a pretend device takes.

python -m benchmarks.calibration.dtypes --device cuda:1
"""

from __future__ import annotations

import argparse
import collections
from typing import Any

import torch

from assay.devices.pretend import pretend
from benchmarks.calibration import operators, samples, stream

DTYPES = (
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.complex64, torch.complex128,
    torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool,
)  # fmt: skip
KINDS = {
    "agree": "taken where the database says so, refused where it says not",
    "too kind": "the database says that the device does not take it; pretend computes it, as the CPU does",
    "too strict": "the database says that the device takes it; pretend refuses it, as the CPU has no such kernel",
}


def check(operator: Any, device: torch.device) -> stream.Result:
    """For every dtype: whether the declared and the pretended device agree on taking it."""
    declared = operator.supported_dtypes(device.type)
    found = {}
    for dtype in DTYPES:
        taken = _taken(operator, dtype, device)
        if taken is not None:
            kind = "agree" if taken == (dtype in declared) else "too kind" if taken else "too strict"
            found[str(dtype).removeprefix("torch.")] = kind
    outcome = "agree" if set(found.values()) <= {"agree"} else "differ"
    return {"outcome": outcome, "dtypes": found}


def _taken(operator: Any, dtype: torch.dtype, device: torch.device) -> bool | None:
    """Whether the first sample of this dtype runs; nothing where there is no sample."""
    try:
        tree = next(iter(samples.inputs(operator, dtype, 1)), None)
    except Exception:  # the sample function computes with the dtype on the CPU
        return None
    if tree is None:
        return None
    try:
        value, args, kwargs = samples.put(tree, device, samples.host_arguments(operator))
        operator.op(value, *args, **kwargs)
    except Exception:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:1")
    parser.add_argument("--first", type=int)
    parser.add_argument("--last", type=int, default=1 << 30)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    database = samples.operators()
    names = [samples.name(operator) for operator in database]
    if asked.first is not None:
        with operators.quietly(), pretend(asked.device) as pretended:
            stream.emit(asked.first, asked.last, names, lambda i: check(database[i], pretended.device))
        return
    results = stream.collect(__spec__.name, ["--device", asked.device], names)
    stream.keep(f"dtypes_{asked.device.split(':')[0]}", results)
    counts = collections.Counter((d, kind) for one in results for d, kind in one.get("dtypes", {}).items())
    for dtype in DTYPES:
        row = {kind: counts[str(dtype).removeprefix("torch."), kind] for kind in KINDS}
        print(dtype, row)


if __name__ == "__main__":
    main()
