"""What torch's Python side answers while a pretend device is there: torch.cuda, mps, xpu and accelerator.

A build of torch without a device lacks the C functions that ``torch.cuda`` and its kin call. While :func:`front` is
open they are there, so torch's own Python code runs as on a build that has the device; Python functions are replaced
only where torch bound a C function when it was imported. :func:`tables` lists every name that changes, and all of them
are put back on leaving.
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from assay.devices.pretend.errors import PretendError
from assay.devices.pretend.events import Event, Recorder
from assay.devices.pretend.streams import NumberedEvents, Streams, event_methods, stream_methods
from assay.errors import describe

NUMBERS = {"cuda": 1, "xpu": 12, "mps": 13}  # c10/core/DeviceType.h
KEPT: Any = object()
_ABSENT: Any = object()


@contextmanager
def front(
    device: str,
    count: int,
    get: Callable[[], int],
    set: Callable[[int], None],
    recorder: Recorder,
    generators: Callable[[int], torch.Generator] | None = None,
) -> Iterator[None]:
    """Let torch's Python modules answer for a pretend device while the block runs.

    Args:
        device: ``"cuda"``, ``"mps"`` or ``"xpu"``.
        count: how many of them there are.
        get: the current device of this thread.
        set: makes another device the current one.
        recorder: where waiting for the device is noted.
        generators: the default generator of each device; ``None`` for generators of the CPU that stand in for them.

    Raises:
        PretendError: this build of torch has the device itself.
    """
    machine = Machine(device, count, get, set, recorder, generators or (lambda index: torch.Generator()))
    _refuse_real(device)
    patches = Patches()
    try:
        for owner, names in tables(machine).items():
            for name, value in names.items():
                patches.put(_found(owner), name, value)
        _forget()
        machine.begin()
        yield
    finally:
        machine.end()
        patches.restore()
        _forget()


@dataclass
class Machine:
    """What the answers are made of: how many devices there are, which is current, and their generators."""

    kind: str
    count: int
    get: Callable[[], int]
    set: Callable[[int], None]
    recorder: Recorder
    generator: Callable[[int], torch.Generator]
    process: int = field(default_factory=os.getpid)
    sync_debug: int = 0
    generators: tuple[torch.Generator, ...] = ()
    streams: Streams = field(init=False)

    def __post_init__(self) -> None:
        self.streams = Streams(self.kind, NUMBERS[self.kind], self.get, self.choose, self.recorder)
        self.generators = tuple(self.generator(index) for index in range(self.count))

    def begin(self) -> None:
        """Initialise the device's module at once: torch's C code asks for that only once in a process.

        Seeds that were set before, and wait in the module's queue, are so applied to the generators.
        """
        self.recorder.listeners.append(self._on_event)
        if self.kind != "mps":
            _found(f"torch.{self.kind}")._lazy_init()

    def end(self) -> None:
        """Stop listening."""
        if self._on_event in self.recorder.listeners:
            self.recorder.listeners.remove(self._on_event)

    def forked(self) -> bool:
        """Whether this process was forked after the device was initialised: CUDA and XPU cannot be used there."""
        return os.getpid() != self.process

    def init(self) -> None:
        """What ``_cuda_init`` and ``_xpu_init`` do: give the module its generators (torch/csrc/cuda/Module.cpp)."""
        module = _found(f"torch.{self.kind}")
        module.default_generators = self.generators
        module._get_device_properties = self.properties

    def choose(self, index: int) -> None:
        """Make a device the current one."""
        if not 0 <= index < self.count:
            raise _no_such_device(self.kind, index, self.count)
        self.set(index)

    def choose_if_any(self, index: int) -> None:
        """Make a device the current one; a negative index changes nothing."""
        self.exchange(index)

    def exchange(self, index: int) -> int:
        """Make a device the current one, and say which was; a negative index changes nothing."""
        before = self.get()
        if index >= 0 and index != before:
            self.choose(index)
        return before

    def waits(self, operator: str) -> Callable[..., None]:
        """A function that notes that the host waited for a device."""
        return lambda index=-1: self.streams.waited(operator, self.get() if index < 0 else index)

    def stream(self, index: int) -> torch.Stream:
        """The current stream, as ``torch.accelerator`` gives it."""
        stream_id, device_index, device_type = self.streams.current(index)
        return torch.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)

    def properties(self, index: int) -> Properties:
        """The description of one device."""
        if not 0 <= index < self.count:
            raise _no_such_device(self.kind, index, self.count)
        return Properties(f"pretended {self.kind}:{index} (assay, computed by the CPU)", total_memory=_memory())

    def set_sync_debug(self, mode: int) -> None:
        """What ``torch.cuda.set_sync_debug_mode`` sets: 0 nothing, 1 a warning, 2 an error where the host waits."""
        self.sync_debug = mode

    def _on_event(self, event: Event) -> None:
        # torch.cuda.synchronize and Event.synchronize do not ask for the mode, nor do they on a real device
        # (c10/cuda/CUDAFunctions.h in pytorch/pytorch: memcpy_and_sync and stream_synchronize do).
        asked = event.operator in ("torch.cuda.synchronize", "torch.cuda.Event.synchronize")
        if event.kind != "sync" or asked or not self.sync_debug:
            return
        if self.sync_debug == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=3)


@dataclass(frozen=True)
class Properties:
    """What ``get_device_properties`` gives: the name tells that the device is pretended, the figures are of no device.

    Compute capability 8.0 is the lowest that has bfloat16, so code that asks for it takes the path of recent devices.
    """

    name: str
    total_memory: int
    major: int = 8
    minor: int = 0
    multi_processor_count: int = 1
    is_integrated: int = 0
    is_multi_gpu_board: int = 0
    max_threads_per_multi_processor: int = 2048
    max_threads_per_block: int = 1024
    regs_per_multiprocessor: int = 65536
    shared_memory_per_block: int = 49152
    shared_memory_per_multiprocessor: int = 102400
    warp_size: int = 32
    L2_cache_size: int = 0
    gcnArchName: str = ""  # noqa: N815 - torch's name
    uuid: str = "00000000-0000-0000-0000-000000000000"
    platform_name: str = "assay"
    vendor: str = "assay"
    type: str = "gpu"
    version: str = ""
    driver_version: str = ""
    max_compute_units: int = 1
    gpu_eu_count: int = 1
    gpu_subslice_count: int = 1
    max_work_group_size: int = 1024
    max_num_sub_groups: int = 64
    sub_group_sizes: tuple[int, ...] = (16, 32)
    local_mem_size: int = 65536
    has_fp16: bool = True
    has_fp64: bool = True
    has_atomic64: bool = True
    has_bfloat16_conversions: bool = True
    has_subgroup_matrix_multiply_accumulate: bool = False
    has_subgroup_matrix_multiply_accumulate_tensor_float32: bool = False
    has_subgroup_2d_block_io: bool = False
    is_integrated_gpu: bool = False


@dataclass
class Patches:
    """Attributes that were changed, with what they were: put back in reverse order."""

    _undo: list[tuple[Any, str, Any, list[Any] | None]] = field(default_factory=list)

    def put(self, owner: Any, name: str, value: Any) -> None:
        """Set an attribute; with :data:`KEPT` only remember it, and what a list holds."""
        old = vars(owner).get(name, _ABSENT)
        self._undo.append((owner, name, old, list(old) if isinstance(old, list) else None))
        if value is not KEPT:
            setattr(owner, name, value)

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


def _no_such_device(kind: str, index: int, count: int) -> Exception:
    if kind == "cuda":  # c10/cuda/CUDAException.cpp; the lines on debugging that follow there are left out
        return torch.AcceleratorError("CUDA error: invalid device ordinal")
    text = f"The device index is out of range. It must be in [0, {count}), but got {index}."
    return RuntimeError(text)  # c10/xpu/XPUFunctions.h


def _refuse_real(device: str) -> None:
    real = {"cuda": torch._C._has_cuda, "mps": torch._C._has_mps, "xpu": torch._C._has_xpu}
    if real[device]:
        raise PretendError(
            describe(
                what=f"pretend({device!r})",
                got=f"a build of torch {torch.__version__} that has {device} itself",
                expected=f"a build without {device}",
                do="Use the real device, or install torch's build for the CPU",
            )
        )


def _refuse(what: str) -> Callable[..., Any]:
    def refused(*_: object, **__: object) -> Any:
        raise PretendError(
            describe(
                what=what,
                got="a call on a pretend device",
                expected="a real device: there is nothing here that could run or measure it",
                do="Leave this part out here; the device's name says whether it is pretended",
            )
        )

    return refused


def _found(path: str) -> Any:
    """The module or class of that name."""
    try:
        return importlib.import_module(path)
    except ImportError:
        module, _, name = path.rpartition(".")
        return getattr(_found(module), name)


def _forget() -> None:
    """Empty the caches in which torch remembers what it found out about devices."""
    mps = torch.backends.mps
    cached = (
        mps.is_available, mps.is_macos_or_newer, mps.is_macos13_or_newer, mps.get_name, mps.get_core_count,
        torch.cuda._check_bf16_tensor_supported, torch.xpu.get_device_capability,
        torch.accelerator.get_device_capability,
    )  # fmt: skip
    for function in cached:
        function.cache_clear()


def _memory() -> int:
    """The memory of this machine in bytes: what the pretend device would fill."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


class _Runtime:
    """Stands for ``torch._C._cudart``: nothing of CUDA's own library is there."""

    def __init__(self, machine: Machine) -> None:
        self.cudaMemGetInfo = lambda device: (_memory(), _memory())

    def __getattr__(self, name: str) -> Any:
        return _refuse(f"torch.cuda.cudart().{name}")


class _Nvtx:
    """Stands for ``torch._C._nvtx``: ranges and marks are for a profiler that is not there, and do nothing."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


def _nothing(*_: object, **__: object) -> None:
    """What memory that is not counted needs."""


def _statistics(*_: object) -> dict[str, Any]:
    """Memory is not counted on a pretend device: torch.cuda.memory_allocated() and the like read 0."""
    names = ("allocation", "segment", "active", "inactive_split")
    sizes = ("allocated_bytes", "reserved_bytes", "active_bytes", "inactive_split_bytes", "requested_bytes")
    pools, values = ("all", "small_pool", "large_pool"), ("current", "peak", "allocated", "freed")
    counts: dict[str, Any] = {name: {pool: dict.fromkeys(values, 0) for pool in pools} for name in names + sizes}
    oversize = {name: dict.fromkeys(values, 0) for name in ("oversize_allocations", "oversize_segments")}
    return counts | oversize | {"num_alloc_retries": 0, "num_ooms": 0, "num_sync_all_streams": 0}


# --------------------------------------------------------------------------------------------------------------------
# Every name that changes while a pretend device is there: where it is, its name, and what it is then. KEPT: torch's own
# code changes it (initialisation, queues of seeds), and it is put back.
# --------------------------------------------------------------------------------------------------------------------


def tables(machine: Machine) -> dict[str, dict[str, Any]]:
    """Every name that changes while ``machine`` is there: module or class, name, new value."""
    return {"cuda": _cuda, "mps": _mps, "xpu": _xpu}[machine.kind](machine)


def _accelerator(machine: Machine) -> dict[str, Any]:
    device = torch.device(machine.kind)
    return {
        "_get_accelerator": lambda: device,
        "_accelerator_getAccelerator": lambda: device,
        "_accelerator_getDeviceIndex": machine.get,
        "_accelerator_setDeviceIndex": machine.choose_if_any,
        "_accelerator_exchangeDevice": machine.exchange,
        "_accelerator_maybeExchangeDevice": machine.exchange,
        "_accelerator_synchronizeDevice": machine.waits("torch.accelerator.synchronize"),
        "_accelerator_getStream": machine.stream,
        "_accelerator_setStream": lambda stream: machine.streams.choose(
            stream.stream_id, stream.device_index, stream.device_type
        ),
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_emptyCache": _nothing,
        "_accelerator_emptyHostCache": _nothing,
        "_accelerator_getDeviceStats": _statistics,
        "_accelerator_getMemoryInfo": lambda index: (_memory(), _memory()),
        "_accelerator_resetAccumulatedStats": _nothing,
        "_accelerator_resetPeakStats": _nothing,
        "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": _dtypes(machine.kind)},
        "_acceleratorGraph": _refuse("torch.accelerator.Graph"),
    }


def _dtypes(kind: str) -> set[torch.dtype]:
    from assay.devices import supports

    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    if supports(kind, "float64").supported is False:
        dtypes -= {torch.float64, torch.complex128}
    return dtypes


def _common(machine: Machine) -> dict[str, dict[str, Any]]:
    """What torch.cuda and torch.xpu have alike."""
    kind = machine.kind
    stream, event = stream_methods(machine.streams), event_methods(machine.streams)
    return {
        f"torch.{kind}": {
            "_initialized": False,
            "_cached_device_count": machine.count,
            "_queued_calls": KEPT,
            "default_generators": KEPT,
            "_get_device_properties": KEPT,
            "_is_in_bad_fork": machine.forked,
            "_exchange_device": machine.exchange,
            "_maybe_exchange_device": machine.exchange,
        },
        f"torch._C._{kind.capitalize()}StreamBase": stream,
        f"torch._C._{kind.capitalize()}EventBase": event,
        "torch._C": {
            **_accelerator(machine),
            f"_has_{kind}": True,
            f"_{kind}_init": machine.init,
            f"_{kind}_isInBadFork": machine.forked,
            f"_{kind}_getDeviceCount": lambda: machine.count,
            f"_{kind}_getDevice": machine.get,
            f"_{kind}_setDevice": machine.choose,
            f"_{kind}_exchangeDevice": machine.exchange,
            f"_{kind}_maybeExchangeDevice": machine.exchange,
            f"_{kind}_canDeviceAccessPeer": lambda device, peer: True,
            f"_{kind}_synchronize": machine.waits(f"torch.{kind}.synchronize"),
            f"_{kind}_getCurrentStream": machine.streams.current,
            f"_{kind}_getCurrentRawStream": lambda index: machine.streams.current(index)[0],
            f"_{kind}_setStream": machine.streams.choose,
            f"_{kind}_getStreamFromExternal": _refuse(f"torch.{kind}.get_stream_from_external"),
            f"_{kind}_getArchFlags": lambda: None,
            f"_{kind}_emptyCache": _nothing,
            f"_{kind}_memoryStats": _statistics,
            f"_{kind}_resetPeakMemoryStats": _nothing,
            f"_{kind}_resetAccumulatedMemoryStats": _nothing,
            f"_{kind}_setMemoryFraction": _nothing,
            f"_{kind}_getMemoryFraction": lambda index: 1.0,
            f"_{kind}_memorySnapshot": _refuse(f"torch.{kind}.memory.memory_snapshot"),
            f"_{kind}_customAllocator": _refuse(f"a memory allocator of one's own on {kind}"),
            f"_{kind}_changeCurrentAllocator": _refuse(f"torch.{kind}.memory.change_current_allocator"),
            f"_{kind}_getAllocator": _refuse(f"a memory pool on {kind}"),
        },
        "torch.Tensor": {"record_stream": lambda tensor, stream: None},
    }


def _cuda(machine: Machine) -> dict[str, dict[str, Any]]:
    table = _common(machine)
    refused = {
        "_cuda_getCurrentBlasHandle": "torch.cuda.current_blas_handle",
        "_cuda_getCurrentSolverHandle": "torch.cuda.current_solver_handle",
        "_cuda_jiterator_compile_and_launch_kernel": "a kernel compiled at run time (torch.cuda.jiterator)",
        "_cuda_cudaCachingAllocator_raw_alloc": "torch.cuda.caching_allocator_alloc",
        "_cuda_cudaCachingAllocator_raw_delete": "torch.cuda.caching_allocator_delete",
        "_cuda_cudaHostAllocator": "CUDA's allocator of pinned memory",
        "_cuda_record_memory_history": "torch.cuda.memory._record_memory_history",
        "_cuda_record_memory_history_legacy": "torch.cuda.memory._record_memory_history",
        "_cuda_attach_out_of_memory_observer": "an observer of CUDA's memory",
        "_graph_pool_handle": "torch.cuda.graph_pool_handle",
    }
    table["torch._C"] |= {name: _refuse(what) for name, what in refused.items()} | {
        "_cuda_getDefaultStream": machine.streams.default,
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_cuda_sleep": _nothing,
        "_cuda_ipc_collect": _nothing,
        "_cuda_clearCublasWorkspaces": _nothing,
        "_cuda_hostMemoryStats": _statistics,
        "_cuda_resetPeakHostMemoryStats": _nothing,
        "_cuda_resetAccumulatedHostMemoryStats": _nothing,
        "_cuda_getAllocatorBackend": lambda: "pretend",
        "_cuda_set_sync_debug_mode": machine.set_sync_debug,
        "_cuda_get_sync_debug_mode": lambda: machine.sync_debug,
        "_cuda_hasPrimaryContext": lambda index: 0 <= index < machine.count,
    }
    table["torch.cuda"] |= {"_cudart": _Runtime(machine), "_compile_kernel": _refuse("torch.cuda._compile_kernel")}
    table["torch.cuda.graphs"] = {
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_graph_pool_handle": _refuse("torch.cuda.graph_pool_handle"),
    }
    table["torch._C._CUDAGraph"] = {"__new__": _refuse("torch.cuda.CUDAGraph")}
    table["torch._C._MemPool"] = {"__new__": _refuse("torch.cuda.MemPool"), "__init__": _nothing}
    table["torch.UntypedStorage"] = {"_share_cuda_": _refuse("a tensor of cuda sent to another process")}
    table["torch.cuda.nvtx"] = {"_nvtx": _Nvtx()}
    return table


def _xpu(machine: Machine) -> dict[str, dict[str, Any]]:
    table = _common(machine)
    table["torch._C"] |= {
        "_xpu_isCurrentStreamCapturing": lambda: False,
        "_xpu_getMemoryInfo": lambda index: (_memory(), _memory()),
        "_xpu_recordMemoryHistory": _refuse("torch.xpu.memory._record_memory_history"),
    }
    table["torch.xpu.graphs"] = {
        "_xpu_isCurrentStreamCapturing": lambda: False,
        "_xpu_graph_pool_handle": _refuse("torch.xpu.graph_pool_handle"),
    }
    table["torch._C._XPUGraph"] = {"__new__": _refuse("torch.xpu.XPUGraph")}
    return table


def _mps(machine: Machine) -> dict[str, dict[str, Any]]:
    events = NumberedEvents(machine.streams)
    answers = {
        "_has_mps": True,
        "_mps_is_available": lambda: True,
        "_mps_is_in_bad_fork": machine.forked,
        "_mps_is_on_macos_or_newer": lambda major, minor: True,
        "_mps_is_on_macos_13_or_newer": lambda minor=0: True,
        "_mps_get_name": lambda: machine.properties(0).name,
        "_mps_get_core_count": lambda: 1,
        "_mps_get_default_generator": lambda: machine.generators[0],
        "_mps_deviceSynchronize": machine.waits("torch.mps.synchronize"),
        "_mps_emptyCache": _nothing,
        "_mps_setMemoryFraction": _nothing,
        "_mps_currentAllocatedMemory": lambda: 0,
        "_mps_driverAllocatedMemory": lambda: 0,
        "_mps_recommendedMaxMemory": _memory,
        "_mps_maxBufferLength": _memory,
        "_mps_acquireEvent": events.acquire,
        "_mps_releaseEvent": _nothing,
        "_mps_recordEvent": events.record,
        "_mps_waitForEvent": _nothing,
        "_mps_queryEvent": lambda number: True,
        "_mps_synchronizeEvent": events.synchronize,
        "_mps_elapsedTimeOfEvents": events.elapsed,
    }
    refused = {
        "_mps_profilerStartTrace": "torch.mps.profiler",
        "_mps_profilerStopTrace": "torch.mps.profiler",
        "_mps_isCapturing": "torch.mps.profiler",
        "_mps_isCaptureEnabled": "torch.mps.profiler",
        "_mps_startCapture": "torch.mps.profiler",
        "_mps_stopCapture": "torch.mps.profiler",
        "_mps_compileShader": "torch.mps.compile_shader",
        "_mps_loadMetalllib": "torch.mps.load_metallib",
        "_mps_loadMetallibFromPath": "torch.mps.load_metallib",
        "_mps_host_alias_storage": "a view of mps memory from the host",
    }
    return {
        "torch._C": _accelerator(machine) | answers | {name: _refuse(what) for name, what in refused.items()},
        "torch.mps": {"_default_mps_generator": None, "_is_in_bad_fork": machine.forked},
        "torch.Tensor": {"record_stream": lambda tensor, stream: None},
    }
