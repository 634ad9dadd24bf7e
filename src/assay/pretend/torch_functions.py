"""Every name of torch that changes while a pretend device is there, and what it is then."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.data import get_worker_info
from torch.utils.data._utils.fetch import _IterableDatasetFetcher, _MapDatasetFetcher

from assay.devices.capabilities import supports
from assay.devices.operators.rules import rules
from assay.errors import describe
from assay.pretend import adapters
from assay.pretend.device_copies import COMMUNICATION
from assay.pretend.device_state import DeviceState, memory
from assay.pretend.errors import PretendError, refuse
from assay.pretend.streams import NumberedEvents, event_methods, mps_stream_methods, stream_methods

KEPT: Any = object()
"""Torch's own code changes it (initialisation, queues of seeds), and it is put back."""


def replacements(machine: DeviceState) -> dict[str, dict[str, Any]]:
    """Every name that changes while ``machine`` is there: module or class, name, new value."""
    return {"cuda": _cuda, "mps": _mps, "xpu": _xpu}.get(machine.kind, _adapter)(machine) | _workers(machine.kind)


def _accelerator(machine: DeviceState) -> dict[str, Any]:
    device = torch.device(machine.kind)
    return {
        "_get_accelerator": lambda: device,
        "_accelerator_getAccelerator": lambda: device,
        "_accelerator_deviceCount": lambda: machine.count,  # of torch before 2.7
        "_accelerator_getDeviceIndex": machine.get,
        "_accelerator_setDeviceIndex": machine.exchange,
        "_accelerator_exchangeDevice": machine.exchange,
        "_accelerator_maybeExchangeDevice": machine.maybe_exchange,
        "_accelerator_synchronizeDevice": machine.waits("torch.accelerator.synchronize"),
        "_accelerator_getStream": machine.stream,
        "_accelerator_setStream": lambda stream: machine.streams.choose(
            stream.stream_id, stream.device_index, stream.device_type
        ),
        "_accelerator_isAllocatorInitialized": lambda: True,
        "_accelerator_emptyCache": _nothing,
        "_accelerator_emptyHostCache": _nothing,
        "_accelerator_getDeviceStats": _statistics,
        "_accelerator_getMemoryInfo": lambda index: (memory(), memory()),
        "_accelerator_resetAccumulatedStats": _nothing,
        "_accelerator_resetPeakStats": _nothing,
        "_accelerator_getDeviceCapability": lambda index: {"supported_dtypes": _dtypes(machine.kind)},
        "_acceleratorGraph": refuse("torch.accelerator.Graph"),
    }


def _common(machine: DeviceState) -> dict[str, dict[str, Any]]:
    """What torch.cuda and torch.xpu have in common."""
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
            "_maybe_exchange_device": machine.maybe_exchange,
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
            f"_{kind}_maybeExchangeDevice": machine.maybe_exchange,
            f"_{kind}_canDeviceAccessPeer": lambda device, peer: True,
            f"_{kind}_synchronize": machine.waits(f"torch.{kind}.synchronize"),
            f"_{kind}_getCurrentStream": machine.streams.current,
            f"_{kind}_getCurrentRawStream": lambda index: machine.streams.current(index)[0],
            f"_{kind}_setStream": machine.streams.choose,
            f"_{kind}_getStreamFromExternal": refuse(f"torch.{kind}.get_stream_from_external"),
            f"_{kind}_getArchFlags": lambda: None,
            f"_{kind}_emptyCache": _nothing,
            f"_{kind}_memoryStats": _statistics,
            f"_{kind}_resetPeakMemoryStats": _nothing,
            f"_{kind}_resetAccumulatedMemoryStats": _nothing,
            f"_{kind}_setMemoryFraction": _nothing,
            f"_{kind}_getMemoryFraction": lambda index: 1.0,
            f"_{kind}_memorySnapshot": refuse(f"torch.{kind}.memory.memory_snapshot"),
            f"_{kind}_customAllocator": refuse(f"a memory allocator of one's own on {kind}"),
            f"_{kind}_changeCurrentAllocator": refuse(f"torch.{kind}.memory.change_current_allocator"),
            f"_{kind}_getAllocator": refuse(f"a memory pool on {kind}"),
        },
        **_dlpack(machine),
    }


def _cuda(machine: DeviceState) -> dict[str, dict[str, Any]]:
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
    table["torch._C"] |= {name: refuse(what) for name, what in refused.items()} | COMMUNICATION
    table["torch._C"] |= {
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
        "_cuda_CUDAAllocator_AllocatorState": type("AllocatorState", (), {}),  # torch/_inductor/cudagraph_trees.py
        "_set_cached_tensors_enabled": _nothing,
        "_cuda_hasPrimaryContext": lambda index: 0 <= index < machine.count,
    }
    table["torch.cuda"] |= {"_cudart": _Runtime(machine), "_compile_kernel": refuse("torch.cuda._compile_kernel")}
    table["torch.cuda.graphs"] = {
        "_cuda_isCurrentStreamCapturing": lambda: False,
        "_graph_pool_handle": refuse("torch.cuda.graph_pool_handle"),
    }
    table["torch._C._CUDAGraph"] = {"__new__": refuse("torch.cuda.CUDAGraph")}
    table["torch._C._MemPool"] = {"__new__": refuse("torch.cuda.MemPool"), "__init__": _nothing}
    sharing = refuse("a tensor of cuda sent to another process")
    table["torch.UntypedStorage"] = {"__new__": _storage(machine), "_share_cuda_": sharing}
    table["torch.backends.cudnn"] = {"is_acceptable": lambda tensor: False}  # else it warns that there is no cuDNN
    table["torch.cuda.nccl"] = {"is_available": lambda tensors: False}  # else it warns that there is no NCCL
    table["torch.cuda.nvtx"] = {"_nvtx": _Nvtx()}
    return table


def _xpu(machine: DeviceState) -> dict[str, dict[str, Any]]:
    table = _common(machine)
    table["torch._C"] |= {
        "_xpu_isCurrentStreamCapturing": lambda: False,
        "_xpu_getMemoryInfo": lambda index: (memory(), memory()),
        "_xpu_recordMemoryHistory": refuse("torch.xpu.memory._record_memory_history"),
    }
    table["torch.xpu.graphs"] = {
        "_xpu_isCurrentStreamCapturing": lambda: False,
        "_xpu_graph_pool_handle": refuse("torch.xpu.graph_pool_handle"),
    }
    table["torch._C._XPUGraph"] = {"__new__": refuse("torch.xpu.XPUGraph")}
    return table


def _mps(machine: DeviceState) -> dict[str, dict[str, Any]]:
    events = NumberedEvents(machine.streams)
    answers = {
        "_has_mps": True,
        "_mps_is_available": lambda: True,
        "_mps_is_in_bad_fork": machine.forked,
        "_mps_is_on_macos_or_newer": lambda major, minor: True,
        "_mps_is_on_macos_13_or_newer": lambda minor=0: True,
        "_mps_get_name": lambda: machine.names[0],
        "_mps_get_core_count": lambda: 1,
        "_mps_get_default_generator": lambda: machine.generators[0],
        "_mps_deviceSynchronize": machine.waits("torch.mps.synchronize"),
        "_mps_emptyCache": _nothing,
        "_mps_setMemoryFraction": _nothing,
        "_mps_currentAllocatedMemory": lambda: 0,
        "_mps_driverAllocatedMemory": lambda: 0,
        "_mps_recommendedMaxMemory": memory,
        "_mps_maxBufferLength": memory,
        "_mps_acquireEvent": events.acquire,
        "_mps_releaseEvent": _nothing,
        "_mps_recordEvent": events.record,
        "_mps_waitForEvent": _nothing,
        "_mps_queryEvent": lambda number: True,
        "_mps_synchronizeEvent": events.synchronize,
        "_mps_elapsedTimeOfEvents": events.elapsed,
        "_mps_getCurrentStream": lambda: SimpleNamespace(stream_id=machine.streams.current()[0]),
        "_mps_setStream": lambda stream: machine.streams.choose(stream.stream_id, 0, machine.streams.number),
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
        "_mps_host_alias_storage": "a view of mps memory from the CPU",
    }
    table = _dlpack(machine)
    table["torch.Tensor"]["pin_memory"] = _pinning(machine)
    return table | {
        "torch._C._MPSStreamBase": mps_stream_methods(machine.streams),
        "torch._C": _accelerator(machine) | answers | {name: refuse(what) for name, what in refused.items()},
        "platform": {"processor": lambda: "arm"},  # by which Lightning knows a Mac with an Apple GPU
        "torch.mps": {"_default_mps_generator": None, "_is_in_bad_fork": machine.forked},
        "torch.UntypedStorage": {"__new__": _storage(machine)},
    }


def _adapter(machine: DeviceState) -> dict[str, dict[str, Any]]:
    """A device that an adapter brings to torch; the rest is in :mod:`assay.pretend.adapters`."""
    table, own = _dlpack(machine), adapters.replacements(machine)
    for path, names in own.items():
        table[path] = table.get(path, {}) | names
    table["torch.UntypedStorage"] = {"__new__": _storage(machine)}
    table["torch._C"] = _accelerator(machine)
    return table


def _pinning(machine: DeviceState) -> Callable[..., Any]:
    """``x.pin_memory()``, where the device has no memory of that kind."""
    original = torch.Tensor.pin_memory
    refusal = rules(machine.kind).pinning

    def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if torch.overrides.has_torch_function_unary(self):
            return torch.overrides.handle_torch_function(pin_memory, (self,), self, device)
        if self.device.type != "cpu":
            return original(self)
        machine.recorder.record("operator", "aten::_pin_memory", machine.kind, refusal)
        raise RuntimeError(refusal)

    return pin_memory


def _workers(kind: str) -> dict[str, dict[str, Any]]:
    """A worker of a DataLoader that returns a tensor of the device: real ones wait without end for it, or crash."""

    def checked(fetch: Callable[..., Any]) -> Callable[..., Any]:
        def run(fetcher: Any, index: Any) -> Any:
            batch = fetch(fetcher, index)
            if get_worker_info() is not None:
                for leaf in tree_leaves(batch):
                    if isinstance(leaf, torch.Tensor) and leaf.device.type == kind:
                        raise _cannot_leave_a_worker(leaf)
            return batch

        return run

    place = "torch.utils.data._utils.fetch"
    return {
        f"{place}.{fetcher.__name__}": {"fetch": checked(fetcher.fetch)}
        for fetcher in (_IterableDatasetFetcher, _MapDatasetFetcher)
    }


def _cannot_leave_a_worker(tensor: torch.Tensor) -> PretendError:
    got = f"a tensor on {tensor.device} in its batch"
    expected = "tensors on the CPU: a tensor of a device cannot be sent to the process that trains"
    do = "Move the batch to the device in the loop over the DataLoader, or use num_workers=0"
    return PretendError(describe("a worker of the DataLoader", got, expected, do))


def _dtypes(kind: str) -> set[torch.dtype]:
    dtypes = {value for value in vars(torch).values() if isinstance(value, torch.dtype)}
    if supports(kind, "float64").supported is False:
        dtypes -= {torch.float64, torch.complex128}
    return dtypes


class _Runtime:
    """Stands for ``torch._C._cudart``: nothing of CUDA's own library is there."""

    def __init__(self, machine: DeviceState) -> None:
        self.cudaMemGetInfo = lambda device: (memory(), memory())

    def __getattr__(self, name: str) -> Any:
        return refuse(f"torch.cuda.cudart().{name}")


class _Nvtx:
    """Stands for ``torch._C._nvtx``: ranges and marks are for a profiler that is not there, and do nothing."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        return lambda *_: 0


def _storage(machine: DeviceState) -> Callable[..., Any]:
    """``torch.UntypedStorage(size, device=...)``, whose C code knows only the devices of its build (Storage.cpp)."""

    def new(cls: type, *args: Any, device: Any = None, **rest: Any) -> Any:
        if device is None or torch.device(device).type != machine.kind:
            return torch._C.StorageBase.__new__(cls, *args, **({} if device is None else {"device": device}), **rest)
        content = args[0] if args else 0
        if isinstance(content, int):
            return torch.empty(content, dtype=torch.uint8, device=device).untyped_storage()
        return torch.tensor(list(content), dtype=torch.uint8, device=device).untyped_storage()

    return new


def _dlpack(machine: DeviceState) -> dict[str, dict[str, Any]]:
    """DLPack hands out an address of the device's memory, where other libraries would find none."""
    refused, capsule = refuse("DLPack of a tensor on a pretend device"), torch._C._to_dlpack

    def guarded(original: Callable[..., Any]) -> Callable[..., Any]:
        def hand_out(tensor: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            return (refused if tensor.device.type == machine.kind else original)(tensor, *args, **kwargs)

        return hand_out

    return {
        "torch.Tensor": {"__dlpack__": guarded(torch.Tensor.__dlpack__), "record_stream": _nothing},
        "torch.utils.dlpack": {"to_dlpack": guarded(capsule)},
        "torch": {"to_dlpack": guarded(capsule)},
    }


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
