"""Which kernel multiplies how many rows of activations: measured crossings, and what the device has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from assay.devices.capabilities import device_type
from assay.quantize import tuning_records
from assay.quantize.kernels import KERNELS
from assay.quantize.scheme import Scheme
from assay.quantize.tuning_records import Steps

if TYPE_CHECKING:
    import torch

Key: TypeAlias = tuple[str, str, str]
FALLBACK = "dequantize"
ANY = "*"


def _on_cpu(name: str, packed: Steps = (), bfloat16: int = 28, wider: int = 40) -> dict[Key, Steps]:
    """Compiled code for few rows; without it torch's kernel, which is slow but in bfloat16; then expansion."""
    last = {"bfloat16": bfloat16, "float16": wider, "float32": wider}
    first = dict.fromkeys(last, (1, "native"))
    torchs = {"bfloat16": packed}
    return {("cpu", dtype, name): (first[dtype], *torchs.get(dtype, ()), (last[dtype], FALLBACK)) for dtype in last}


# (kind of device, dtype of activations, scheme or its bits) -> (from so many rows on, kernel); of two from the same
# row on, the first that the weight can take. Those of the CPU were measured (benchmarks/quantize.py). Those of other
# devices were not: packed kernels read less memory, which counts for few rows, and use no more than a part of the
# processor's arithmetic, which counts for many.
DEFAULTS: dict[Key, Steps] = {
    **{key: steps for bits in (2, 3, 5, 6, 7) for key, steps in _on_cpu(f"int{bits}").items()},
    **_on_cpu("int4", ((1, "int4pack-cpu"),), bfloat16=36, wider=64),
    **_on_cpu("int4:g32", ((1, "int4pack-cpu"),), bfloat16=20, wider=28),
    **_on_cpu("int8", ((1, "int8pack"),), bfloat16=36, wider=128),
    ("cpu", ANY, "int8:dynamic"): ((1, "int8dynamic"),),
    **{("cpu", ANY, f"int{bits}:dynamic"): ((1, "native"), (28, FALLBACK)) for bits in range(2, 8)},
    (ANY, ANY, "int4"): ((1, "int4pack"), (32, FALLBACK)),
    (ANY, ANY, "int8:dynamic"): ((1, "int8dynamic"),),
    ("mps", ANY, "int8"): ((1, "int8pack"), (32, FALLBACK)),
    ("xpu", ANY, "int8"): ((1, "int8pack"), (32, FALLBACK)),
}


@dataclass(frozen=True)
class DispatchTable:
    """From how many rows on which kernel is the fastest.

    Attributes:
        steps: (kind of device, dtype, scheme) -> (first number of rows, name of the kernel), in ascending order. A key
            may have ``"*"`` for any device or dtype, and ``"int4"`` stands for all schemes of 4 bits.
        source: where it was measured, as plans say it.
        note: what else a plan should say of it, such as why measurements of this machine are not used.
    """

    steps: Mapping[Key, Steps] = field(default_factory=lambda: DEFAULTS)
    source: str = "assay's own measurements"
    note: str = ""

    def candidates(self, device: str, dtype: str, scheme: Scheme) -> list[Steps]:
        """What the table says, the most particular first."""
        keys = [
            (kind, each, name)
            for name in dict.fromkeys((str(scheme), scheme.family))
            for kind, each in ((device, dtype), (device, ANY), (ANY, dtype), (ANY, ANY))
        ]
        return [self.steps[key] for key in keys if key in self.steps]


@cache
def default_table(kind: str) -> DispatchTable:
    """What was measured on this machine for a kind of device, where it was; else assay's own measurements.

    Example:
        >>> default_table("mps").source
        "assay's own measurements"
    """
    result, why = tuning_records.read(kind, KERNELS)
    if result is None:
        return DispatchTable(note=f"{why}: measure again with assay quantize --tune" if why else "")
    measured = {(each.dtype, each.scheme.partition(":")[0]) for each in result.measured}
    others = {key: steps for key, steps in DEFAULTS.items() if (key[1], key[2].partition(":")[0]) not in measured}
    return DispatchTable({**others, **result.steps}, f"measured on this machine on {result.date}")


def regimes(
    dtype: str | torch.dtype,
    device: str | torch.device,
    scheme: Scheme,
    shape: Sequence[int],
    table: DispatchTable | None = None,
    release: str | None = None,
) -> Steps:
    """Which kernel multiplies from how many rows on.

    A kernel that the weight cannot take there is left out, and the one beside it takes its place. There is no silent
    change of precision: every kernel computes in the dtype of the activations or wider.

    Args:
        dtype: of the activations.
        device: any, of this machine or not.
        scheme: of the weight.
        shape: of the weight, ``(N, K)``.
        table: what was measured; by default on this machine, where it was, else assay's own.
        release: of torch; by default the installed one.

    Returns:
        (first number of rows, name of the kernel), in ascending order; the first of them from 1.

    Example:
        >>> regimes("bfloat16", "mps", Scheme.parse("int4"), (4096, 4096))
        ((1, 'int4pack'), (32, 'dequantize'))
        >>> regimes("float32", "cpu", Scheme.parse("int4"), (4096, 4096))[-1][1]
        'dequantize'
    """
    name = str(dtype).removeprefix("torch.")
    kind = device_type(device)
    for steps in (table or default_table(kind)).candidates(kind, name, scheme):
        can = [
            (rows, kernel)
            for rows, kernel in steps
            if not KERNELS[kernel].why_not(device, dtype, scheme, shape, release)
        ]
        if len(can) == len(steps) or any(kernel != FALLBACK for _, kernel in can):
            return _distinct_steps([(1, can[0][1]), *can[1:]])
    return ((1, FALLBACK),)


def at(rows: int, steps: Steps) -> str:
    """The name of the kernel for so many rows.

    Example:
        >>> at(31, ((1, "int4pack"), (32, "dequantize")))
        'int4pack'
    """
    return [steps[0][1], *[name for first, name in steps if first <= rows]][-1]  # torch.compile traces it


def _distinct_steps(steps: list[tuple[int, str]]) -> Steps:
    """Without steps from the same row on as one before, and without steps to the kernel that is taken already."""
    result: list[tuple[int, str]] = []
    for rows, kernel in steps:
        if not result or (rows > result[-1][0] and kernel != result[-1][1]):
            result.append((rows, kernel))
    return tuple(result)
