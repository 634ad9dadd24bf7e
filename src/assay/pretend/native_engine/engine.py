"""The native engine as a context: opened with the rules of a device, and asked for its current device."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import set_multithreading_enabled

from assay.devices.operators.overloads import overloads
from assay.pretend.compile_exclusion import exclude_from_compilation
from assay.pretend.events import Recorder
from assay.pretend.native_engine.build import load
from assay.pretend.operand_checks import CHECKS, SCALAR_TYPES, check_of
from assay.pretend.torch_patches import Patches

if TYPE_CHECKING:
    from assay.devices.operators.rules import Rules

Function = Callable[..., Any]


class NativeEngine:
    """Runs a device's operators on the CPU, behind torch's dispatcher."""

    def __init__(self, device: str, count: int, rules: Rules, recorder: Recorder) -> None:
        self._engine = load()
        self._device, self._count, self._rules, self._recorder = device, count, rules, recorder
        self._patches = Patches()
        self._workers = {overload.delegate for overload in overloads().values()}

    def __enter__(self) -> NativeEngine:
        rules = self._rules
        waits = {way: copy.why or f"copy {way}" for way, copy in rules.copies.items() if copy.waits}
        texts = {
            "fallback_warning": rules.texts.get("fallback", "").replace("{operator}", "{}"),
            "placeholder": self._placeholder(),
            "bad_index": rules.texts["index"],
        }
        exclude_from_compilation(self._row)
        exclude_from_compilation(self._record)
        functions, facts = (self._row, self._record), (rules.falls_back, rules.missing_dtypes, texts, waits)
        self._engine.open(self._device, self._count, *functions, *facts)
        for (owner, name), replacement in REPLACED.items():
            self._patches.put(owner, name, replacement(getattr(owner, name)))
        self._patches.put(torch.UntypedStorage, "resize_", self._storage_resize(torch.UntypedStorage.resize_))
        return self

    def __exit__(self, *_: object) -> None:
        self._patches.restore()
        self._engine.close(self._device)

    def current_device(self) -> int:
        """The index of this thread's current device."""
        return int(self._engine.current_device())

    def set_device(self, index: int) -> None:
        """Make another device this thread's current one."""
        self._engine.set_device(index)

    def generator(self, index: int) -> torch.Generator:
        """The default generator of a device."""
        return self._engine.generator(self._device, index)  # type: ignore[no-any-return]

    def _row(self, name: str) -> tuple[object, ...]:
        """A rule in the order of Rule's members (session.h); asked for when the operator first runs on the device."""
        self._recorder.used = True
        rule = self._rules.operator(name)
        overload = overloads().get(name)
        composite = overload is None or (overload.composite and not self._rules.has_kernel(overload))
        structured = name in self._workers or (overload is not None and bool(overload.delegate))
        return (
            rule.available,
            rule.available_sparse,
            rule.on_cpu,
            CHECKS.index(check_of(rule, composite=composite, placeholder=bool(self._placeholder()))),
            structured,
            "" if rule.available and rule.available_sparse else self._rules.missing(name),
            rule.waits_when,
            rule.why_waits,
            tuple((way.named, way.when, way.deterministic) for way in rule.nondeterminism),
            tuple(SCALAR_TYPES[dtype] for dtype in rule.missing_dtypes),
            rule.dtype_error.replace("{dtype}", "{}"),
            rule.refused_when,
            rule.refusal,
            tuple(SCALAR_TYPES[dtype] for dtype in rule.wider),
        )

    def _storage_resize(self, resize: Function) -> Function:
        """``UntypedStorage.resize_``, whose C code knows only the devices of its build (StorageMethods.cpp)."""

        def run(storage: Any, size: int) -> Any:
            if storage.device.type != self._device:
                return resize(storage, size)
            self._engine.resize_storage(storage, size)
            return storage

        return run

    def _placeholder(self) -> str:
        """What the device's kernels say of an operand from elsewhere, if torch does not check before calling them."""
        text = self._rules.texts["mixed"]
        return "" if "{" in text else text

    def _record(self, kind: str, operator: str, device: str, why: str, *copy: Any) -> None:
        names = ("source", "target", "non_blocking", "pinned", "elements")
        self._recorder.record(kind, operator, device, why, **dict(zip(names, copy, strict=True)))


def _in_this_thread(run_backward: Function) -> Function:
    """torch makes its backward threads once, for the devices there are then; ours come and go."""

    def run(*args: Any, **kwargs: Any) -> Any:
        with set_multithreading_enabled(False):
            return run_backward(*args, **kwargs)

    return run


def _storage_clone(clone: Function) -> Function:
    """``torch.UntypedStorage(device=...)`` knows the devices of the build only; a tensor makes one anywhere."""
    return lambda storage: clone(storage) if storage.device.type == "cpu" else _new_storage(storage, storage.device)


def _storage_to(to: Function) -> Function:
    """See :func:`_storage_clone`."""

    def run(storage: Any, device: torch.device, non_blocking: bool = False) -> Any:
        if device.type == "cpu" or storage.device == device:
            return to(storage, device, non_blocking)
        return _new_storage(storage, device, non_blocking)

    return run


def _new_storage(storage: Any, device: torch.device, non_blocking: bool = False) -> Any:
    new = torch.empty(storage.nbytes(), dtype=torch.uint8, device=device).untyped_storage()
    return new.copy_(storage, non_blocking)


REPLACED: dict[tuple[Any, str], Callable[[Function], Function]] = {
    (torch.autograd, "_engine_run_backward"): _in_this_thread,
    (torch.autograd.graph, "_engine_run_backward"): _in_this_thread,
    (torch.storage._StorageBase, "clone"): _storage_clone,
    (torch.storage, "_to"): _storage_to,
}
"""What of torch's Python side does not work with devices that torch was not built for: place and replacement."""
