"""What a vendor's adapter brings to torch, for a pretended device: ``torch.npu``, ``import torch_npu``, ``x.npu()``.

Torch has no code of its own for these devices. Their adapters write modules after the model of ``torch.cuda``; here one
such module is made for all of them, and what else programs call there is data (``[adapter]`` in ``devices/known/``).

Three of them are torch's device ``PrivateUse1``, which gets a name once in a process, and cannot lose it: see
:func:`claim_name`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from assay.devices.capabilities import fact_file
from assay.devices.kinds import KINDS
from assay.errors import describe
from assay.pretend.device_state import DeviceState, memory
from assay.pretend.errors import PretendError, refuse
from assay.pretend.process_groups import registered
from assay.pretend.streams import event_methods, stream_methods

UNNAMED = "privateuseone"  # what torch calls PrivateUse1 until it has a name
_claimed: list[str] = []


class AdapterModule(ModuleType):
    """A module that stands for one of an adapter; by its type it is told from the real one."""


# The name -------------------------------------------------------------------------------------------------------------


def claim_name(kind: str) -> None:
    """Give torch's ``PrivateUse1`` the name of a kind that is to be pretended.

    Torch does this once in a process, and from then on takes ``PrivateUse1`` for the accelerator of the machine, in
    backward and elsewhere in its C++, so that no device of another kind can be pretended there. What its Python side
    says of that is corrected for the time when the device is closed.

    Raises:
        PretendError: ``PrivateUse1`` has the name of another kind, pretended or real.

    Source:
        ``torch.utils.rename_privateuse1_backend``; ``getAccelerator`` in ``aten/src/ATen/DeviceAccelerator.cpp``.
    """
    taken = torch._C._get_privateuse1_backend_name()
    if taken == kind and _claimed:
        return
    if taken != UNNAMED:
        got = f"a process in which torch calls its device PrivateUse1 {taken!r}"
        expected = "none: torch gives that name once in a process, and takes its device for the accelerator ever after"
        do = f"Pretend {kind} in another process; `assay audit` starts one for each device"
        raise PretendError(describe(f"pretend({kind!r})", got, expected, do))
    if not KINDS[kind].renamed:
        return
    torch._C._rename_privateuse1_backend(kind)
    _claimed.append(kind)
    host = torch.device("cpu")
    for name, otherwise in (("_accelerator_getAccelerator", None), ("_get_accelerator", host)):
        if hasattr(torch._C, name):
            setattr(torch._C, name, _unless_renamed(getattr(torch._C, name), kind, otherwise))


def _unless_renamed(ask: Callable[..., Any], kind: str, otherwise: Any) -> Callable[..., Any]:
    """A question for the accelerator, to which a device that is not open is no answer."""

    @functools.wraps(ask)
    def answer(*args: Any) -> Any:
        found = ask(*args)
        return otherwise if found is not None and found.type == kind else found

    return answer


# The modules ----------------------------------------------------------------------------------------------------------


def replacements(machine: DeviceState) -> dict[str, dict[str, Any]]:
    """What of torch changes while the device of an adapter is there: module or class, name, new value."""
    kind = machine.kind
    module = device_module(machine)
    moves = {kind: _to(kind), f"is_{kind}": property(lambda self: self.device.type == kind)}
    registration = {"_privateuse1_backend_name": kind} if KINDS[kind].renamed else {}
    return {
        "torch": {kind: module},
        "torch.Tensor": moves,
        "torch.nn.Module": {kind: lambda self, device=None: self.to(_named(kind, device))},
        "torch.utils.backend_registration": registration,
    }


@contextmanager
def adapter(machine: DeviceState) -> Iterator[None]:
    """Let ``import torch_npu`` find the modules that stand for it, and ``torch.distributed`` the back end."""
    with _imported(machine), registered(machine.kind, machine.recorder):
        yield


@contextmanager
def _imported(machine: DeviceState) -> Iterator[None]:
    module = getattr(torch, machine.kind)
    own = {f"torch.{machine.kind}": module, f"torch.{machine.kind}.amp": module.amp}
    modules = own | _packages(machine.kind, module)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, old in before.items():
            sys.modules.pop(name, None)
            if old is not None:
                sys.modules[name] = old


def device_module(machine: DeviceState) -> AdapterModule:
    """``torch.npu``: what ``torch.cuda`` has, under the name of the device."""
    kind, facts = machine.kind, fact_file(machine.kind)["adapter"]
    module = _module(f"torch.{kind}")
    names = {
        **_devices(machine),
        **_streams(machine),
        **_memory(),
        **_random(machine),
        **_tensor_types(kind),
        **dict.fromkeys(facts.get("does_nothing", ()), _nothing),
        **{name: refuse(f"torch.{kind}.{name}") for name in facts["refused"]},
        "get_amp_supported_dtype": lambda: [getattr(torch, name) for name in facts["autocast"]],
        "is_bf16_supported": lambda *_, **__: "bfloat16" in facts["autocast"],
        "amp": _amp(kind),
        "default_generators": machine.generators,
        "_lazy_init": _nothing,
        "_is_in_bad_fork": machine.forked,
    }
    vars(module).update(names)
    return module


def _devices(machine: DeviceState) -> dict[str, Any]:
    index = functools.partial(_index, machine)

    class device:  # noqa: N801 - the names that programs call
        """A device that is the current one in the block."""

        def __init__(self, device: Any) -> None:
            self.idx, self.before = index(device), -1

        def __enter__(self) -> None:
            self.before = machine.exchange(self.idx)

        def __exit__(self, *_: object) -> None:
            machine.exchange(self.before)

    class device_of(device):  # noqa: N801
        """The same, for the device of a tensor; nothing for one of another kind."""

        def __init__(self, obj: Any) -> None:
            super().__init__(obj.device if obj.device.type == machine.kind else machine.get())

    return {
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "init": _nothing,
        "device_count": lambda: machine.count,
        "current_device": machine.get,
        "set_device": lambda device: machine.choose(index(device)),
        "device": device,
        "device_of": device_of,
        "synchronize": lambda device=None: machine.streams.waited(f"torch.{machine.kind}.synchronize", index(device)),
        "get_device_name": lambda device=None: machine.names[index(device)],
        "get_device_properties": lambda device=None: machine.properties(index(device)),
        "get_device_capability": lambda device=None: None,  # as torch_npu says; of the others it is refused
        "can_device_access_peer": lambda device, peer: True,
        "mem_get_info": lambda device=None: (memory(), memory()),
        "set_sync_debug_mode": _nothing,
        "get_sync_debug_mode": lambda: 0,
    }


def _index(machine: DeviceState, device: Any) -> int:
    """The index of a device that is named as in ``torch.cuda``: by a number, a name, or not at all."""
    if isinstance(device, int):
        return machine.get() if device < 0 else device
    index = None if device is None else torch.device(device).index
    return machine.get() if index is None else index


def _streams(machine: DeviceState) -> dict[str, Any]:
    streams, index = machine.streams, functools.partial(_index, machine)
    Stream: Any = type("Stream", (), {
        **stream_methods(streams),
        "__hash__": lambda stream: hash((stream.stream_id, stream.device)),
        "wait_event": lambda stream, event: None,
        "wait_stream": lambda stream, other: None,
        "record_event": lambda stream, event=None: _recorded(event or Event(), stream),
    })  # fmt: skip
    methods = event_methods(streams)
    record: Any = methods["record"]
    Event: Any = type("Event", (), {
        **methods,
        "record": lambda event, stream=None: record(event, stream or current()),
    })  # fmt: skip

    def current(device: Any = None) -> Any:
        stream_id, device_index, _ = streams.current(index(device))
        return Stream(stream_id=stream_id, device_index=device_index)

    @contextmanager
    def entered(stream: Any) -> Iterator[None]:
        with stream if stream is not None else current():
            yield

    return {
        "Stream": Stream,
        "Event": Event,
        "current_stream": current,
        "default_stream": lambda device=None: Stream(stream_id=0, device_index=index(device)),
        "set_stream": lambda stream: streams.choose(stream.stream_id, stream.device_index, stream.device_type),
        "stream": entered,
        "StreamContext": entered,
    }


def _recorded(event: Any, stream: Any) -> Any:
    event.record(stream)
    return event


MEASURED = ("allocated", "reserved", "cached")


def _memory() -> dict[str, Any]:
    """Memory is not counted on a pretend device, as under ``torch.cuda``."""
    zero = {f"{most}memory_{what}": lambda device=None: 0 for most in ("", "max_") for what in MEASURED}
    done = ("empty_cache", "reset_peak_memory_stats", "reset_accumulated_memory_stats", "ipc_collect",
            "reset_max_memory_allocated", "reset_max_memory_cached", "set_per_process_memory_fraction")  # fmt: skip
    return {
        **zero,
        **dict.fromkeys(done, _nothing),
        "memory_stats": lambda device=None: {},
        "memory_summary": lambda device=None, abbreviated=False: "memory is not counted on a pretend device",
        "get_per_process_memory_fraction": lambda device=None: 1.0,
    }


def _random(machine: DeviceState) -> dict[str, Any]:
    def of(device: Any = None) -> torch.Generator:
        return machine.generators[_index(machine, device)]

    def seed_all(seed: int) -> None:
        for generator in machine.generators:
            generator.manual_seed(int(seed))

    def set_states(states: Any) -> None:
        for generator, state in zip(machine.generators, states, strict=False):
            generator.set_state(state)

    return {
        "manual_seed": lambda seed: of().manual_seed(int(seed)) and None,
        "manual_seed_all": seed_all,
        "seed": lambda: of().seed() and None,
        "seed_all": lambda: seed_all(of().seed()),
        "initial_seed": lambda: of().initial_seed(),
        "get_rng_state": lambda device=None: of(device).get_state(),
        "set_rng_state": lambda state, device=None: of(device).set_state(state) and None,
        "get_rng_state_all": lambda: [generator.get_state() for generator in machine.generators],
        "set_rng_state_all": set_states,
    }


def _amp(kind: str) -> AdapterModule:
    """``torch.npu.amp``, whose names are those of ``torch.cuda.amp``."""

    class autocast(torch.autocast):  # noqa: N801
        """Mixed precision on this kind of device."""

        def __init__(self, enabled: bool = True, dtype: Any = torch.float16, cache_enabled: bool = True) -> None:
            super().__init__(kind, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(torch.amp.GradScaler):
        """Scaled gradients on this kind of device."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(kind, *args, **kwargs)

    module = _module(f"torch.{kind}.amp")
    vars(module).update(autocast=autocast, GradScaler=GradScaler)
    return module


TYPES = {
    "FloatTensor": torch.float32, "DoubleTensor": torch.float64, "HalfTensor": torch.float16,
    "BFloat16Tensor": torch.bfloat16, "LongTensor": torch.int64, "IntTensor": torch.int32, "ShortTensor": torch.int16,
    "CharTensor": torch.int8, "ByteTensor": torch.uint8, "BoolTensor": torch.bool,
}  # fmt: skip
"""The old names of tensors of a dtype, ``torch.npu.FloatTensor``."""


def _tensor_types(kind: str) -> dict[str, Any]:
    def maker(dtype: torch.dtype) -> Callable[..., Tensor]:
        def make(*content: Any) -> Tensor:
            if len(content) == 1 and not isinstance(content[0], int | torch.Size):
                return torch.tensor(content[0], dtype=dtype, device=kind)
            size = content[0] if content and isinstance(content[0], torch.Size) else content
            return torch.empty(size, dtype=dtype, device=kind)

        return make

    return {name: maker(dtype) for name, dtype in TYPES.items()}


def _packages(kind: str, module: ModuleType) -> dict[str, ModuleType]:
    """The package by which programs import the adapter, and its parts."""
    facts = fact_file(kind)["adapter"]
    packages: dict[str, ModuleType] = {}
    for name in facts["modules"]:
        packages[name] = _module(name)
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(packages[parent], last, packages[name])
    top = packages[KINDS[kind].adapter]
    vars(top).update({kind: module, "__version__": torch.__version__.partition("+")[0]})
    for call in facts.get("calls", ()):
        owner, _, last = call.rpartition(".")
        setattr(packages[owner], last, _nothing)
    for each in facts.get("refused_imports", ()):
        owner, _, last = each.rpartition(".")
        vars(packages[owner])["__getattr__"] = _only_real(owner, last, refuse(each))
    own = f"{kind}_"  # operators of the vendor, such as torch_npu.npu_fusion_attention
    vars(top)["__getattr__"] = _only_real(top.__name__, own, lambda: None)
    return packages | {f"{KINDS[kind].adapter}.{kind}": module}


def _only_real(owner: str, prefix: str, at_once: Callable[[], object]) -> Callable[[str], Any]:
    """What a module says of names that it does not have: those that begin so cannot be had without a real device."""

    def look_up(name: str) -> Any:
        if not name.startswith(prefix):
            raise AttributeError(f"module {owner!r} has no attribute {name!r}")
        at_once()
        return refuse(f"{owner}.{name}")

    return look_up


def _module(name: str) -> AdapterModule:
    """An empty module that says, for a name that it does not have, that it only stands for another one."""
    module = AdapterModule(name, "It stands for a module of an adapter while its device is pretended.")
    module.__spec__, module.__path__ = ModuleSpec(name, None, is_package=True), []
    return module


def _to(kind: str) -> Callable[..., Tensor]:
    def to(self: Tensor, device: Any = None, non_blocking: bool = False, **layout: Any) -> Tensor:
        return self.to(_named(kind, device), non_blocking=non_blocking, **layout)

    return to


def _named(kind: str, device: Any) -> torch.device:
    return torch.device(kind, device) if isinstance(device, int) else torch.device(device or kind)


def _nothing(*_: Any, **__: Any) -> None:
    """What there is nothing to do for on a device that is not there."""
