"""What torch's Python side answers while a pretend device is there: torch.cuda, mps, xpu and accelerator.

A build of torch without a device lacks the C functions that ``torch.cuda`` and its kin call. While :func:`patch_torch`
is open they are there, so torch's own Python code runs as on a build that has the device; Python functions are replaced
only where torch bound a C function when it was imported. ``torch_functions.py`` lists every name that changes, and all
of them are put back on leaving.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from types import FunctionType
from typing import Any

import torch

from assay.devices.kinds import ACCELERATORS, KINDS
from assay.errors import describe
from assay.pretend.adapters import AdapterModule, adapter
from assay.pretend.compile_exclusion import exclude_from_compilation
from assay.pretend.device_state import DeviceState
from assay.pretend.errors import PretendError
from assay.pretend.events import Recorder
from assay.pretend.torch_caches import empty_answer_caches
from assay.pretend.torch_functions import KEPT, replacements

_ABSENT: Any = object()
HEAP_TYPE = 1 << 9  # of a type's flags: Python made it (Py_TPFLAGS_HEAPTYPE)


@contextmanager
def patch_torch(
    device: str,
    count: int,
    get: Callable[[], int],
    set: Callable[[int], None],
    recorder: Recorder,
    generators: Callable[[int], torch.Generator] | None = None,
) -> Iterator[None]:
    """Let torch's Python modules answer for a pretend device while the block runs.

    ``get`` and ``set`` are the current device of this thread, ``generators`` the default generator of each device;
    ``None`` for generators of the CPU that stand in for them.
    """
    machine = DeviceState(device, count, get, set, recorder, generators or (lambda index: torch.Generator()))
    with ExitStack() as stack:
        stack.callback(empty_answer_caches)  # the last of all, after an error, too
        patches = stack.enter_context(Patches())
        stack.callback(machine.end)
        for path, names in replacements(machine).items():
            for name, value in names.items() if (owner := _owner_if_there(path)) is not None else ():
                patches.put(owner, name, value)
        empty_answer_caches()
        with adapter(machine) if KINDS[device].adapter else nullcontext():
            machine.begin()
            yield


class Patches:
    """Attributes that were changed, with what they were: put back in reverse order."""

    def __init__(self) -> None:
        self._undo: list[tuple[Any, str, Any, list[Any] | None]] = []

    def __enter__(self) -> Patches:
        return self

    def __exit__(self, *_: object) -> None:
        self.restore()

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute; with :data:`KEPT` only remember it, and what a list holds."""
        old = vars(owner).get(name, _ABSENT)
        items = list(old) if isinstance(old, list) else None
        if value is not KEPT:
            exclude_from_compilation(value)
            _take_attributes(value, old)
            setattr(owner, name, value)
        self._undo.append((owner, name, old, items))  # what could not be set is not put back

    def restore(self) -> None:
        """Put everything back as it was."""
        while self._undo:
            owner, name, old, items = self._undo.pop()
            if items is not None:
                old[:] = items
            if old is _ABSENT:
                if name in vars(owner):
                    delattr(owner, name)
            else:
                setattr(owner, name, old)


def _take_attributes(value: Any, old: Any) -> None:
    """Give a function what torch reads of the one that stood there, as of a cached one ``cache_clear``."""
    if isinstance(value, FunctionType) and callable(old):
        for name in ("__wrapped__", *(each for each in dir(old) if not each.startswith("__"))):
            if hasattr(old, name) and not hasattr(value, name):
                setattr(value, name, getattr(old, name))


def real_devices() -> list[str]:
    """The kinds of device that this build of torch has itself, whether or not the machine has one."""
    return [kind for kind in ACCELERATORS if getattr(torch._C, f"_has_{kind}", False) or _has_adapter(kind)]


def _has_adapter(kind: str) -> bool:
    """Whether a vendor's adapter was imported, that brings the device to torch."""
    module = getattr(torch, kind, None) if KINDS[kind].adapter else None
    return module is not None and not isinstance(module, AdapterModule)


def refuse_real(device: str) -> None:
    """Raise where this build of torch has the device itself: there it would stand in the way."""
    if device in real_devices():
        raise _wrong_build(f"pretend({device!r})", f"a build without {device}", "Use the real device, or")


def refuse_native_beside_real() -> None:
    """Raise where this build of torch has another device: its C++ takes one kind of accelerator at a time."""
    if real_devices():
        raise _wrong_build("engine='native'", "a build for the CPU", "Use engine='python', which works beside it, or")


def stand_in(plain: type, make: Callable[..., Any]) -> type:
    """A class that may stand in the place of a class of torch: ``make`` makes its objects, which are those of torch."""

    meta: Any = type(plain)
    base: Any = meta if meta.__flags__ & HEAP_TYPE else type  # that of torch.cuda.FloatTensor, in C, takes no subclass

    class StandIn(base):  # type: ignore[misc]
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
            return make(*args, **kwargs)

        def __instancecheck__(cls, instance: object) -> bool:  # noqa: N805
            return isinstance(instance, plain)

    return StandIn(plain.__name__, (), {})


def _wrong_build(what: str, expected: str, instead: str) -> PretendError:
    got = f"a build of torch {torch.__version__} that has {', '.join(real_devices())} itself"
    install = (
        f"pip install torch=={torch.__version__.partition('+')[0]} --index-url https://download.pytorch.org/whl/cpu"
    )
    do = f"{instead} torch's build for the CPU in an environment of its own: {install}"
    return PretendError(describe(what, got, expected, do))


def _owner_if_there(path: str) -> Any:
    """The module or class of that name; ``None`` where this release of torch lacks it (graphs of XPU before 2.11)."""
    try:
        return owner_of(path)
    except AttributeError:
        return None


def owner_of(path: str) -> Any:
    """The module or class of that name."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(owner_of(module), name)
