"""torch.cuda, torch.mps, torch.xpu and torch.accelerator answer while a pretend device is there, and are put back."""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch

from assay.pretend import pretend
from assay.pretend.device_state import DeviceState
from assay.pretend.errors import PretendError
from assay.pretend.events import Recorder
from assay.pretend.torch_functions import replacements
from assay.pretend.torch_patches import Patches, _owner_if_there, patch_torch, refuse_real

KINDS = ("cuda", "mps", "xpu")
REFUSED = {
    "graph": lambda: torch.cuda.CUDAGraph(),
    "graph pool": lambda: torch.cuda.graph_pool_handle(),
    "profiler": lambda: torch.cuda.profiler.start(),
    "memory history": lambda: torch.cuda.memory._record_memory_history(),
    "memory snapshot": lambda: torch.cuda.memory_snapshot(),
    "memory pool": lambda: torch.cuda.MemPool(),
    "allocator": lambda: torch.cuda.caching_allocator_alloc(8),
    "kernel": lambda: torch.cuda._compile_kernel("", "f"),
    "jiterator": lambda: torch.cuda.jiterator._create_jit_fn("template <typename T> T f(T x) { return x; }")(
        torch.ones(1, device="cuda")
    ),
    "blas handle": lambda: torch.cuda.current_blas_handle(),
    "other process": lambda: torch.ones(1, device="cuda").untyped_storage()._share_cuda_(),
}


class Current:
    """The current device, without an engine."""

    index = 0

    def get(self) -> int:
        return self.index

    def set(self, index: int) -> None:
        self.index = index


def opened(kind: str, count: int = 1, recorder: Recorder | None = None) -> Any:
    """Only the front, without an engine."""
    refuse_real(kind)
    current = Current()
    return patch_torch(kind, count, current.get, current.set, recorder or Recorder())


def everything() -> dict[Any, dict[str, Any]]:
    """What is in every module and class that a pretend device touches."""
    current = Current()
    paths = {
        path
        for kind in KINDS
        for path in replacements(DeviceState(kind, 1, current.get, current.set, Recorder(), _generator))
    }
    there = [owner for path in sorted(paths) if (owner := _owner_if_there(path)) is not None]
    owners = [*there, torch.accelerator, torch.backends.mps, torch.backends.cuda]
    kept = {owner: dict(vars(owner)) for owner in owners}
    for module in (torch.cuda, torch.xpu):
        kept[module]["queue"] = list(module._queued_calls)
    return kept


def _generator(index: int) -> torch.Generator:
    return torch.Generator()


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_as_before_when_the_device_is_gone(kind: str):
    before = everything()
    with opened(kind):
        torch.get_device_module(kind).manual_seed(3)
        torch.manual_seed(4)
        torch.get_device_module(kind).Event().record()
    assert everything() == before
    with pytest.raises(KeyError), opened(kind):
        raise KeyError
    assert everything() == before
    assert not torch.get_device_module(kind).is_available()
    assert not torch.accelerator.is_available()


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_as_before_when_the_engine_is_gone(kind: str, engine: str):
    before = everything()
    with pretend(kind, engine=engine) as there:
        torch.zeros(2, device=there.device).add_(1)
    with pytest.raises(KeyError), pretend(kind, engine=engine):
        raise KeyError
    assert everything() == before


def test_the_device_is_there(there):
    module = torch.get_device_module(there.type)
    assert module.is_available()
    assert module.device_count() == there.count
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device(there.type)
    assert torch.accelerator.device_count() == there.count
    assert torch.accelerator.current_device_index() == 0
    assert "cpu" not in str(torch.accelerator.current_stream())
    module.empty_cache()
    torch.accelerator.empty_cache()


def test_backends_say_so(there):
    assert torch.backends.mps.is_available() == torch.backends.mps.is_built() == (there.type == "mps")
    assert torch.backends.cuda.is_built() == (there.type == "cuda")
    assert torch.cuda.is_initialized() == (there.type == "cuda")


def test_the_name_says_that_it_is_pretended(there):
    if there.type == "mps":
        assert torch.backends.mps.get_name() == "pretended mps:0 (assay, computed by the CPU)"
    else:
        name = torch.get_device_module(there.type).get_device_name(there.device)
        assert name == f"pretended {there.device} (assay, computed by the CPU)"


def test_waiting_is_noted(there):
    torch.get_device_module(there.type).synchronize()
    torch.accelerator.synchronize()
    first, second = there.syncs
    assert first.operator == f"torch.{there.type}.synchronize"
    assert second.operator == "torch.accelerator.synchronize"
    assert first.device == second.device == f"{there.type}:0"
    assert first.where is not None
    assert first.where.file == __file__


def test_waiting_for_another_device_names_it(cuda):
    torch.cuda.synchronize(1)
    torch.cuda.synchronize("cuda:1")
    torch.accelerator.synchronize(1)
    assert [event.device for event in cuda.syncs] == ["cuda:1"] * 3
    assert torch.cuda.current_device() == 0


def test_events_measure_time(there):
    module = torch.get_device_module(there.type)
    start, end = module.Event(enable_timing=True), module.Event(enable_timing=True)
    start.record()
    end.record()
    assert end.query()
    assert there.syncs == []
    end.synchronize()
    assert start.elapsed_time(end) >= 0
    assert [event.operator for event in there.syncs] == [f"torch.{there.type}.Event.synchronize"]


@pytest.mark.skipif(not hasattr(torch.mps, "Stream"), reason="this release of torch has no streams of mps")
def test_mps_has_streams_and_records_events_on_the_first_alone(mps):
    stream = torch.mps.Stream()
    with torch.mps.stream(stream):
        assert torch.mps.current_stream() == stream
        with pytest.raises(NotImplementedError, match="Non-default streams"):
            torch.mps.Event().record()
    assert torch.mps.current_stream() == torch.mps.default_stream()
    stream.synchronize()
    assert [event.operator for event in mps.syncs] == ["torch.mps.Stream.synchronize"]


def test_events_that_were_not_recorded_say_so(indexed):
    module = torch.get_device_module(indexed.type)
    untimed = module.Event()
    with pytest.raises(ValueError, match="Both events must be created with argument 'enable_timing=True'"):
        untimed.elapsed_time(untimed)
    timed = module.Event(enable_timing=True)
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
        timed.elapsed_time(timed)
    timed.synchronize()
    assert indexed.syncs == []


def test_streams_can_be_chosen_and_left(indexed):
    module = torch.get_device_module(indexed.type)
    stream = module.Stream(device=indexed.device)
    assert stream.device == indexed.device
    assert stream != module.current_stream(indexed.device)
    with module.stream(stream):
        assert module.current_stream() == stream
        assert module.current_device() == indexed.device.index
        torch.zeros(2, device=indexed.device).record_stream(stream)
    assert module.current_stream() != stream
    assert module.current_device() == 0
    with stream:
        assert module.current_stream(indexed.device) == stream
    assert stream.query()
    stream.wait_stream(module.current_stream())
    stream.synchronize()
    assert [event.operator for event in indexed.syncs] == [f"torch.{indexed.type}.Stream.synchronize"]


def test_the_generic_stream_is_there(there):
    assert torch.accelerator.current_stream().device == torch.device(there.type, 0)
    assert torch.accelerator.current_stream().stream_id == 0


def test_the_generic_event_works(there):
    event = torch.Event(device=there.device)
    event.record()
    event.synchronize()
    assert event.query()


def test_memory_is_not_counted(there):
    torch.zeros(1000, device=there.device)
    if hasattr(torch.accelerator, "memory_allocated"):  # not in torch 2.6
        assert torch.accelerator.memory_allocated() == 0
        assert torch.accelerator.max_memory_allocated() == 0
    if there.type == "mps":
        assert torch.mps.current_allocated_memory() == 0
        assert torch.mps.recommended_max_memory() > 0
    else:
        module = torch.get_device_module(there.type)
        assert module.memory_allocated() == module.max_memory_allocated() == module.memory_reserved() == 0
        assert module.mem_get_info()[1] == module.get_device_properties(0).total_memory
        module.reset_peak_memory_stats()


def test_memory_summary_of_cuda_is_a_table_of_zeros(cuda):
    assert "PyTorch CUDA memory summary" in torch.cuda.memory_summary()


def test_cuda_describes_itself(cuda):
    assert torch.cuda.get_device_capability() == (8, 0)
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.can_device_access_peer(0, 1)
    assert torch.cuda.get_arch_list() == []
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.cuda.nvtx.range_push("a") == 0


def test_a_device_that_is_not_there_has_no_properties(indexed):
    with pytest.raises((AssertionError, RuntimeError)):
        torch.get_device_module(indexed.type).get_device_properties(5)


@pytest.mark.skipif(not hasattr(torch.accelerator, "get_device_capability"), reason="this release has no such function")
def test_mps_supports_no_float64(mps):
    dtypes = torch.accelerator.get_device_capability()["supported_dtypes"]
    assert torch.float32 in dtypes
    assert torch.float64 not in dtypes


def test_the_sync_debug_mode_of_cuda_warns_and_raises(cuda):
    x = torch.ones(2, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        x.sum().item()
    torch.cuda.set_sync_debug_mode("error")
    assert torch.cuda.get_sync_debug_mode() == 2
    x.add_(1)
    torch.cuda.synchronize()  # is asked for, and no mistake
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        x.sum().item()
    torch.cuda.set_sync_debug_mode("default")
    assert x.sum().item() == 4


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_simulated_is_refused(cuda, name: str):
    with pytest.raises(PretendError, match=r"pretend device, expected a real device|pretended without a compiler"):
        REFUSED[name]()


@pytest.mark.skipif(not hasattr(torch.mps, "compile_shader"), reason="this release of torch compiles no shaders")
def test_shaders_of_mps_are_refused(mps):
    with pytest.raises(PretendError, match=r"torch\.mps\.compile_shader"):
        torch.mps.compile_shader("kernel void f() {}")


def test_a_forked_process_cannot_use_cuda():
    with opened("cuda"):
        child = os.fork()
        if child == 0:
            try:
                torch.cuda.current_device()
            except RuntimeError as error:
                os._exit(7 if "Cannot re-initialize CUDA in forked subprocess" in str(error) else 1)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_seeds_that_were_set_before_are_applied():
    torch.manual_seed(123)
    with opened("cuda", 2):
        assert [generator.initial_seed() for generator in torch.cuda.default_generators] == [123, 123]
        torch.cuda.manual_seed(5)
        assert [generator.initial_seed() for generator in torch.cuda.default_generators] == [5, 123]
        torch.cuda.manual_seed_all(6)
        assert torch.cuda.initial_seed() == 6


def test_what_cannot_be_replaced_is_not_put_back():
    patches, known = Patches(), torch.is_tensor
    patches.put(torch, "is_tensor", None)
    with pytest.raises(TypeError, match="immutable"):
        patches.put(int, "__new__", None)
    patches.restore()
    assert torch.is_tensor is known


def test_autocast_and_scaler_believe_in_the_device(there):
    with torch.autocast(there.type):
        assert torch.is_autocast_enabled(there.type)
    assert torch.amp.GradScaler(there.type).is_enabled()


def test_a_device_that_torch_really_has_is_not_pretended(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch._C, "_has_mps", True)
    with pytest.raises(PretendError, match=r"has .*mps itself"), pretend("mps"):
        pass
