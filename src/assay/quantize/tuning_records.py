"""What was measured on this machine about kernels, in a file of the cache folder; ``tuning`` writes it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

from assay._cache import cache_folder
from assay._records import Record
from assay.devices.processor import processor
from assay.errors import InputError, StateError, describe

Steps: TypeAlias = tuple[tuple[int, str], ...]


class TuningRecord(Record):
    """The kernels for one dtype and scheme on one device.

    Attributes:
        dtype: of the activations, ``"bfloat16"``.
        scheme: of the weights.
        steps: (first number of rows, name of the kernel), in ascending order.
        rows: at how many rows it was timed.
        milliseconds: kernel -> the median at each of the rows; NaN where it had lost by far already.
        unsteady: how many times the fastest call the median was, at the median.
    """

    dtype: str
    scheme: str
    steps: Steps
    rows: tuple[int, ...] = ()
    milliseconds: dict[str, tuple[float, ...]] = field(default_factory=dict)
    unsteady: float = 1.0

    def _check(self) -> None:
        starts = [0, *(rows for rows, _ in self.steps)]
        if starts[1:2] != [1] or any(low >= high for low, high in pairwise(starts)):
            do = "Measure again with assay quantize --tune"
            raise InputError(describe("steps", self.steps, "numbers of rows that ascend from 1", do))


class TuningResult(Record, schema="assay.tuning/1"):
    """All that was measured on one device.

    Attributes:
        device: the kind, ``"cpu"``.
        torch: the release.
        processor: the name of the device's processor.
        date: the day.
        threads: that torch used on the CPU.
        shape: of the weights.
        measured: by dtype and scheme.
    """

    device: str
    torch: str
    processor: str
    date: str
    threads: int
    shape: tuple[int, int]
    measured: tuple[TuningRecord, ...]

    @property
    def steps(self) -> dict[tuple[str, str, str], Steps]:
        """The steps by device, dtype and scheme, as a table for the dispatch has them."""
        return {(self.device, each.dtype, each.scheme): each.steps for each in self.measured}


def file_for(device: str) -> Path | None:
    """The file of the measurements of a kind of device; None without a cache folder."""
    folder = cache_folder()
    return None if folder is None else folder / f"quantize-{device}.json"


def read(device: str, kernels: Collection[str]) -> tuple[TuningResult | None, str]:
    """What was measured here.

    Args:
        device: the kind.
        kernels: the names of the kernels that there are.

    Returns:
        The measurements, or None and why they are not used; without a file the reason is empty.
    """
    path = file_for(device)
    if path is None or not path.is_file():
        return None, ""
    try:
        result = TuningResult.load(path)
    except (OSError, StateError) as error:
        return None, f"{path} cannot be used ({error})"
    import torch

    unknown = {name for each in result.measured for _, name in each.steps} - set(kernels)
    if unknown:
        return None, f"{path} names the kernel {min(unknown)!r}, which there is not"
    for name, value in {"torch": str(torch.__version__), "processor": processor(device)}.items():
        if getattr(result, name) != value:
            return None, f"{path} was measured with {name} {getattr(result, name)}, and this is {value}"
    return result, ""
