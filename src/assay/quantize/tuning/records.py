"""What was measured on this machine about kernels, in a file of TOML in the cache folder; ``tuning`` writes it."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from assay._atomic import write_text
from assay._cache import cache_folder
from assay.devices.processor import processor

FORM = 1
Steps: TypeAlias = tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class TuningRecord:
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
    milliseconds: Mapping[str, Sequence[float]] | None = None
    unsteady: float = 1.0


@dataclass(frozen=True)
class TuningResult:
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

    def to_toml(self) -> str:
        """The file's content."""
        fields = {name: getattr(self, name) for name in ("torch", "processor", "date", "threads", "shape")}
        lines = [f"form = {FORM}", *(f"{name} = {json.dumps(value)}" for name, value in fields.items())]
        for each in self.measured:
            lines += ["", "[[measured]]", f"dtype = {json.dumps(each.dtype)}", f"scheme = {json.dumps(each.scheme)}"]
            lines.append(f"steps = {json.dumps(each.steps)}")
            if each.milliseconds:
                lines.append(f"rows = {json.dumps(each.rows)}")
                named = each.milliseconds.items()
                inside = ", ".join(f"{name} = [{', '.join(f'{ms:.4g}' for ms in times)}]" for name, times in named)
                lines.append(f"milliseconds = {{ {inside} }}")
        return "\n".join([*lines, ""])


def file_for(device: str) -> Path | None:
    """Where what was measured on a kind of device is kept; None without a cache folder."""
    folder = cache_folder()
    return None if folder is None else folder / f"quantize-{device}.toml"


def write(result: TuningResult) -> Path | None:
    """Keep what was measured; None where there is no cache folder."""
    path = file_for(result.device)
    return None if path is None else write_text(path, result.to_toml())


def read(device: str, kernels: Sequence[str]) -> tuple[TuningResult | None, str]:
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
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
        if fields["form"] != FORM:
            return None, f"{path} is of another version of assay"
        measured = tuple(_measured(each, kernels) for each in fields["measured"])
        shape = (int(fields["shape"][0]), int(fields["shape"][1]))
        result = TuningResult(
            device, fields["torch"], fields["processor"], fields["date"], int(fields["threads"]), shape, measured
        )
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        return None, f"{path} cannot be read ({type(error).__name__}: {error})"
    import torch

    now = {"torch": str(torch.__version__), "processor": processor(device)}
    for name, value in now.items():
        if getattr(result, name) != value:
            return None, f"{path} was measured with {name} {getattr(result, name)}, and this is {value}"
    return result, ""


def _measured(fields: Mapping[str, object], kernels: Sequence[str]) -> TuningRecord:
    steps = tuple((int(rows), str(name)) for rows, name in fields["steps"])  # type: ignore[attr-defined]
    ascending = [rows for rows, _ in steps]
    if not steps or steps[0][0] != 1 or ascending != sorted(set(ascending)):
        raise ValueError(f"steps {steps}")
    if unknown := [name for _, name in steps if name not in kernels]:
        raise ValueError(f"no kernel {unknown[0]!r}")
    return TuningRecord(str(fields["dtype"]), str(fields["scheme"]), steps)
