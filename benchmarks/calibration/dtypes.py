"""The dtypes that PyTorch's operator database declares for a device, against what a pretend device takes.

python -m benchmarks.calibration.dtypes --device cuda:1
"""

from __future__ import annotations

import collections
from functools import cache
from typing import Any

import torch

from benchmarks.calibration import mps_lists, samples, stream

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
    declared = declared_dtypes(operator, device.type)
    found = {}
    for dtype in DTYPES:
        taken = _taken(operator, dtype, device)
        if taken is not None:
            kind = "agree" if taken == (dtype in declared) else "too kind" if taken else "too strict"
            found[str(dtype).removeprefix("torch.")] = kind
    outcome = "agree" if set(found.values()) <= {"agree"} else "differ"
    return {"outcome": outcome, "dtypes": found}


def declared_dtypes(operator: Any, kind: str) -> set[torch.dtype]:
    """What the database declares; on mps without what PyTorch's tests expect to fail there.

    Most entries have no list for mps: theirs is the CPU's without float64 and complex128.
    """
    declared = operator.supported_dtypes(kind)
    if kind != "mps":
        return set(declared)
    return {dtype for dtype in declared if not mps_lists.forward_fails(operator, dtype, _lists())}


@cache
def _lists() -> dict[str, mps_lists.Listed]:
    return mps_lists.lists()


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
    database = samples.operators()
    names = [samples.name(operator) for operator in database]
    results = stream.check_all(__spec__.name, __doc__, names, lambda i, place: check(database[i], place.device))
    counts = collections.Counter((d, kind) for one in results for d, kind in one.get("dtypes", {}).items())
    for dtype in DTYPES:
        row = {kind: counts[str(dtype).removeprefix("torch."), kind] for kind in KINDS}
        print(dtype, row)


if __name__ == "__main__":
    main()
