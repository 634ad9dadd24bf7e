"""The devices that are pretended, as torch's Python side asks about them: how many, which is current, what they are."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from assay.devices.kinds import KINDS
from assay.pretend.events import Event, Recorder
from assay.pretend.streams import Streams


@dataclass
class DeviceState:
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
        self.streams = Streams(self.kind, KINDS[self.kind].number, self.get, self.choose, self.recorder)
        self.generators = tuple(self.generator(index) for index in range(self.count))

    def begin(self) -> None:
        """Initialise the device's module at once: torch's C code asks for that only once in a process.

        Seeds that were set before, and wait in the module's queue, are so applied to the generators.
        """
        self.recorder.listeners.append(self._on_event)
        if hasattr(getattr(torch, self.kind), "_lazy_init"):
            getattr(torch, self.kind)._lazy_init()

    def end(self) -> None:
        """Stop listening."""
        if self._on_event in self.recorder.listeners:
            self.recorder.listeners.remove(self._on_event)

    def forked(self) -> bool:
        """Whether this process was forked after the device was initialised: CUDA and XPU cannot be used there."""
        return os.getpid() != self.process

    def init(self) -> None:
        """What ``_cuda_init`` and ``_xpu_init`` do: give the module its generators (torch/csrc/cuda/Module.cpp)."""
        module = getattr(torch, self.kind)
        module.default_generators = self.generators
        module._get_device_properties = self.properties

    def choose(self, index: int) -> None:
        """Make a device the current one."""
        if not 0 <= index < self.count:
            raise no_such_device(self.kind, index, self.count)
        self.set(index)

    def exchange(self, index: int) -> int:
        """Make a device the current one, and say which was; a negative index changes nothing."""
        before = self.get()
        if index >= 0 and index != before:
            self.choose(index)
        return before

    def maybe_exchange(self, index: int) -> int:
        """The same for the way back; torch._dynamo wants the two to be different functions."""
        return self.exchange(index)

    def waits(self, operator: str) -> Callable[..., None]:
        """A function that notes that the program synchronized with a device."""
        return lambda index=-1: self.streams.waited(operator, self.get() if index < 0 else index)

    def stream(self, index: int) -> torch.Stream:
        """The current stream, as ``torch.accelerator`` gives it."""
        stream_id, device_index, device_type = self.streams.current(index)
        stream = CurrentStream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        stream.streams = self.streams
        return stream

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the devices, which say that they are pretended."""
        return tuple(f"pretended {self.kind}:{index} (assay, computed by the CPU)" for index in range(self.count))

    def properties(self, index: int) -> CudaProperties | XpuProperties | DeviceProperties:
        """The description of one device."""
        if not 0 <= index < self.count:
            raise no_such_device(self.kind, index, self.count)
        classes: dict[str, type[CudaProperties | XpuProperties]] = {"cuda": CudaProperties, "xpu": XpuProperties}
        of_kind = classes.get(self.kind, DeviceProperties)
        return of_kind(self.names[index], memory())

    def set_sync_debug(self, mode: int) -> None:
        """What ``torch.cuda.set_sync_debug_mode`` sets: 0 nothing, 1 a warning, 2 an error at a synchronization."""
        self.sync_debug = mode

    def _on_event(self, event: Event) -> None:
        # torch.cuda.synchronize and Event.synchronize do not ask for the mode, nor do they on a real device
        # (c10/cuda/CUDAFunctions.h in pytorch/pytorch: memcpy_and_sync and stream_synchronize do).
        explicit = event.operator in ("torch.cuda.synchronize", "torch.cuda.Event.synchronize")
        if event.kind != "sync" or explicit or not self.sync_debug:
            return
        if self.sync_debug == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        warnings.warn("called a synchronizing CUDA operation", UserWarning, stacklevel=3)


class CurrentStream(torch.Stream):
    """A stream as ``torch.accelerator`` gives it; torch's C code would ask for a guard to enter it."""

    streams: Streams

    def __enter__(self) -> CurrentStream:
        return self.streams.enter(self)  # type: ignore[no-any-return]

    def __exit__(self, *_: object) -> None:
        self.streams.leave(self)


@dataclass(frozen=True)
class DeviceProperties:
    """What the adapters' ``get_device_properties`` have in common."""

    name: str
    total_memory: int


@dataclass(frozen=True)
class CudaProperties:
    """What ``torch.cuda.get_device_properties`` gives: the name says that it is pretended, the figures are of no GPU.

    Compute capability 8.0 is the lowest that has bfloat16, so code that asks for it goes the way of recent devices.
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
    gcnArchName: str = ""  # noqa: N815 - the name that torch reads
    uuid: str = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True)
class XpuProperties:
    """What ``torch.xpu.get_device_properties`` gives; see :class:`CudaProperties`."""

    name: str
    total_memory: int
    platform_name: str = "assay"
    vendor: str = "assay"
    device_id: int = 0
    driver_version: str = ""
    version: str = ""
    type: str = "gpu"
    uuid: str = "00000000-0000-0000-0000-000000000000"
    max_compute_units: int = 1
    gpu_eu_count: int = 1
    gpu_subslice_count: int = 1
    max_work_group_size: int = 1024
    max_num_sub_groups: int = 64
    sub_group_sizes: tuple[int, ...] = (16, 32)
    local_mem_size: int = 65536
    last_level_cache_size: int = 0
    has_fp16: bool = True
    has_fp64: bool = True
    has_atomic64: bool = True
    has_bfloat16_conversions: bool = True
    has_subgroup_matrix_multiply_accumulate: bool = False
    has_subgroup_matrix_multiply_accumulate_tensor_float32: bool = False
    has_subgroup_2d_block_io: bool = False
    is_integrated_gpu: bool = False


def no_such_device(kind: str, index: int, count: int) -> Exception:
    """The error of a device that is not among those there are."""
    if kind == "cuda":  # c10/cuda/CUDAException.cpp; the lines on debugging that follow there are left out
        return torch.AcceleratorError("CUDA error: invalid device ordinal")
    text = f"The device index is out of range. It must be in [0, {count}), but got {index}."
    return RuntimeError(text)  # c10/xpu/XPUFunctions.h


def memory() -> int:
    """The memory of this machine in bytes: what the pretend device would fill."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
