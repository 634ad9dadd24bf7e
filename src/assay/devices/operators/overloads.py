"""What torch itself says about its operators: which device has a kernel of its own, and what is checked there.

The facts come from ``native_functions.yaml``, which torch's wheel carries for ``torchgen``, so that they are those of
the torch that is installed, and from its dispatcher, which knows the kernels that are registered from Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from assay._atomic import write_text
from assay._cache import cache_folder
from assay._records import is_sealed, seal
from assay.devices.kinds import KINDS
from assay.errors import AssayError, describe, needing

FORM = 4
"""Counts up when the table is derived in another way, so that one that was kept is not used."""

BACKENDS = ("CPU", *dict.fromkeys(kind.key for kind in KINDS.values()))
COMPOSITES = ("CompositeImplicitAutograd", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")


@dataclass(frozen=True)
class Overload:
    """One overload of an operator of torch."""

    name: str  # torch's name, such as ``"aten::index.Tensor"``
    # the back ends with a kernel of their own, explicit or through ``structured_delegate``
    kernels: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()  # the back ends with a kernel for a sparse layout
    composite: bool = False  # it is made of other operators, so that it runs wherever these run
    checks: bool = False  # torchgen generates the check that all tensors are on one device, for back ends that have it
    # a ``TensorIterator`` operator, which lets 0-dimensional CPU tensors mix with those of a device
    iterates: bool = False
    delegate: str = ""  # the overload that does the work, ``"aten::mm.out"`` for ``"aten::mm"``; or empty


def operator_name(func: Any) -> str:
    """torch's name of an ``OpOverload``, such as ``"aten::add.Tensor"``."""
    return str(func.name())


@cache
def overloads() -> dict[str, Overload]:
    """All overloads of the installed torch by name; derived once and kept in the cache folder.

    Raises:
        AssayError: the installed torch does not carry ``native_functions.yaml``.
    """
    cache_file = _kept_at()
    rows = _read(cache_file) if cache_file else None
    if rows is None:
        rows = derive()
        if cache_file:
            _keep(cache_file, rows)
    return {row.name: row for row in rows}


def derive() -> list[Overload]:
    """Read torch's ``native_functions.yaml`` and ask its dispatcher, past the cache."""
    text = _yaml_of_torch().read_text(encoding="utf-8")
    entries = {f"aten::{entry['func'].partition('(')[0]}": entry for entry in _load(text)}
    iterating = set(_iterating(text))
    rows = [_overload(name, entries, iterating) for name in entries]
    generated = {f"aten::{out.strip()}" for entry in entries.values() for out in entry.get("autogen", "").split(",")}
    return rows + [Overload(name, composite=True) for name in sorted(generated - {"aten::"} - entries.keys())]


def _overload(name: str, entries: dict[str, dict[str, Any]], iterating: set[str]) -> Overload:
    entry = entries[name]
    delegate = f"aten::{entry['structured_delegate']}" if "structured_delegate" in entry else ""
    worker = entries.get(delegate, entry)
    keys = _keys(entry) | _keys(worker)
    kernels = (back for back in BACKENDS if back in keys or _registered(name, back) or _registered(delegate, back))
    return Overload(
        name,
        kernels=tuple(kernels),
        sparse=tuple(back for back in BACKENDS if {f"Sparse{back}", f"SparseCsr{back}"} & keys),
        composite=not (keys or delegate) or any(key in COMPOSITES for key in _keys(entry)),
        checks="NoCheck" not in entry.get("device_check", ""),
        iterates=name in iterating or worker.get("structured_inherits") == "TensorIteratorBase",
        delegate=delegate,
    )


def _keys(entry: dict[str, Any]) -> set[str]:
    keys = {key.strip() for keys in entry.get("dispatch", {}) for key in keys.split(",")}
    return keys | {"CPU", "CUDA"} if "ufunc_inner_loop" in entry else keys  # torchgen writes these two kernels itself


def _iterating(text: str) -> Iterator[str]:
    """The overloads that torch marks as TensorIterator's, which it does in a comment."""
    name = ""
    for line in text.splitlines():
        if func := re.match(r"- func: ([\w.]+)\(", line):
            name = f"aten::{func[1]}"
        elif re.match(r"\s+device_check: NoCheck\s*#\s*TensorIterator", line):
            yield name


def _registered(name: str, back: str) -> bool:
    """Whether Python registered a kernel: a wheel for the CPU brings no other ones for these back ends."""
    import torch

    if not name or back == "CPU":
        return False
    try:
        return bool(torch._C._dispatch_has_kernel_for_dispatch_key(name, back))
    except RuntimeError:  # in the yaml, but not in this build
        return False


def _load(text: str) -> list[dict[str, Any]]:
    with needing("yaml", "audit", "the list of torch's operators"):
        import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # twenty times as fast, where PyYAML was built with it
    entries: list[dict[str, Any]] = yaml.load(text, Loader=loader)
    return entries


def _yaml_of_torch() -> Path:
    import torch

    file = Path(torch.__file__).parent.parent / "torchgen/packaged/ATen/native/native_functions.yaml"
    if not file.is_file():
        do = "Install torch from its official wheels"
        raise AssayError(describe("torch's operators", f"no {file}", "the file that torch's wheel carries", do))
    return file


def _kept_at() -> Path | None:
    import torch

    folder = cache_folder()
    return folder and folder / f"operators-{torch.__version__}-{FORM}.json"


def _read(file: Path) -> list[Overload] | None:
    try:
        data = json.loads(file.read_text(encoding="utf-8"))
        rows = data["rows"] if is_sealed(data) else None
        return rows and [Overload(**row | {name: tuple(row[name]) for name in ("kernels", "sparse")}) for row in rows]
    except (OSError, ValueError, TypeError, KeyError, RecursionError):  # not there, or not ours: it is made again
        return None


def _keep(file: Path, rows: Iterable[Overload]) -> None:
    try:
        write_text(file, json.dumps(seal({"rows": [asdict(row) for row in rows]})))
    except OSError:  # a full or read-only disk: the next run derives it again
        return
