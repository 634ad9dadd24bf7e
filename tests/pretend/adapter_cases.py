"""What a program does on a device that an adapter brings to torch; each case runs in a process of its own.

Torch gives its device ``PrivateUse1`` a name once in a process, so these are no fixtures like the other kinds: see
``test_adapters.py``, which runs ``main`` of this file.
"""

from __future__ import annotations

import copy
import importlib
import json
import multiprocessing
import re
import sys
import warnings
from pathlib import Path

import torch

from assay.pretend import pretend
from assay.pretend.torch_patches import real_devices


def raised(call) -> str:
    try:
        call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


def moves(there) -> None:
    kind = there.type
    x = torch.arange(4.0).to(kind)
    assert (x + 1).tolist() == [1, 2, 3, 4]
    assert getattr(torch.ones(2), kind)().device == torch.device(kind, 0)
    assert getattr(x, f"is_{kind}")
    assert next(getattr(torch.nn.Linear(2, 2), kind)().parameters()).device.type == kind
    assert getattr(torch, kind).FloatTensor([1.0]).device.type == kind
    with getattr(torch, kind).device(1):
        assert torch.zeros(1, device=kind).device.index == 1
    assert torch.zeros(1, device=kind).device.index == 0
    assert copy.deepcopy(x).device == x.device
    torch.save(x, "/dev/shm/assay_adapter_case.pt")
    assert torch.load("/dev/shm/assay_adapter_case.pt").device == x.device


def clashes(there) -> None:
    x, kind = torch.ones(2, device=there.type), there.type
    text = f"Expected all tensors to be on the same device, but found at least two devices, {kind}:0 and cpu!"
    assert raised(lambda: x + torch.ones(2)) == f"RuntimeError: {text}"
    assert re.search("CUDA|NVIDIA", raised(lambda: torch.ones(2).cuda()))
    assert {event.kind for event in there.events} == {"devices"}


def module(there) -> None:
    of = getattr(torch, there.type)
    assert (of.is_available(), of.device_count(), of.current_device()) == (True, 2, 0)
    assert torch.accelerator.current_accelerator() == torch.device(there.type)
    assert "pretended" in of.get_device_name(1)
    of.manual_seed_all(3)
    first = torch.rand(2, device=there.type)
    torch.manual_seed(3)
    of.manual_seed(3)
    assert torch.equal(first.cpu(), torch.rand(2, device=there.type).cpu())
    assert len(of.get_rng_state_all()) == 2
    before = len(there.syncs)
    of.synchronize()
    start, end = of.Event(enable_timing=True), of.Event(enable_timing=True)
    start.record()
    with of.stream(of.Stream()):
        end.record()
    assert start.elapsed_time(end) >= 0
    assert len(there.syncs) == before + 1
    assert of.memory_allocated() == 0
    assert "PretendError" in raised(lambda: of.graph())
    assert not hasattr(of, "no_such_function")


def imports(there) -> None:
    package = importlib.import_module({"hpu": "habana_frameworks.torch"}.get(there.type, f"torch_{there.type}"))
    assert getattr(package, there.type) is getattr(torch, there.type)
    if there.type == "hpu":
        import habana_frameworks.torch.core as htcore

        assert htcore.mark_step() is None
    else:
        assert importlib.util.find_spec(f"torch_{there.type}") is not None
        assert package.__version__ == torch.__version__.partition("+")[0]
        assert not hasattr(package, "no_such_name")
        own = getattr(package, f"{there.type}_fused_operator")
        assert raised(own).startswith(f"PretendError: torch_{there.type}.{there.type}_fused_operator: got a call on")
    if there.type == "npu":
        assert "PretendError" in raised(lambda: exec("from torch_npu.contrib import transfer_to_npu"))


def autocast(there) -> None:
    layer, x = torch.nn.Linear(3, 2).to(there.type), torch.ones(4, 3, device=there.type)
    with torch.autocast(there.type, dtype=torch.bfloat16):
        low, loss = layer(x), torch.nn.functional.mse_loss(layer(x), torch.zeros(4, 2, device=there.type))
        assert "unsafe to autocast" in raised(lambda: torch.nn.functional.binary_cross_entropy(x, x))
    assert (low.dtype, loss.dtype) == (torch.bfloat16, torch.float32)
    scaler = getattr(torch, there.type).amp.GradScaler()
    scaler.scale(loss).backward()
    scaler.step(torch.optim.SGD(layer.parameters(), 0.1))
    assert layer.weight.grad.device.type == there.type


def autocast_refused(there) -> None:
    assert "PretendError: torch.autocast" in raised(lambda: torch.autocast(there.type))


def gaps_of_npu(there) -> None:
    wide = torch.ones(2, 2, dtype=torch.float64, device="npu")
    assert "not implemented for Double, should be in dtype support list [DT_FLOAT,DT_FLOAT16" in raised(
        lambda: wide @ wide
    )
    whole = torch.ones(2, 2, dtype=torch.int64, device="npu")
    assert "not implemented for Long" in raised(lambda: whole @ whole)
    assert (whole + whole).sum().item() == 8
    assert "aclnnRepeatInterleave" in raised(lambda: wide.repeat_interleave(2, dim=1))
    leaf = torch.ones(2, device="npu", requires_grad=True)
    leaf.repeat_interleave(3).sum().backward()
    assert leaf.grad.tolist() == [3, 3]
    assert "should not be float64" in raised(lambda: torch.sort(wide, stable=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.ones(2, device="npu").double().dtype == torch.float32
        assert torch.ones(2, device="npu").to("cpu", torch.float64).dtype == torch.float64  # on the way, not there
    (message,) = (str(each.message) for each in caught)
    assert message.startswith("Device do not support double dtype now, dtype cast replace with float.")


def evaluates(there) -> None:
    from assay import evaluate
    from assay.metrics import Accuracy

    torch.manual_seed(0)
    layer, batches = torch.nn.Linear(4, 3), [(torch.rand(8, 4), torch.arange(8) % 3) for _ in range(3)]
    here, on_device = (
        evaluate(layer, batches, {"accuracy": Accuracy(num_classes=3)}, device=device) for device in ("cpu", "auto")
    )
    assert on_device.device.startswith(there.type), on_device.device
    assert here["accuracy"].value == on_device["accuracy"].value


def falls_back(there) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert torch.frexp(torch.ones(2, device=there.type))[0].device.type == there.type
    (event,) = [event for event in there.events if event.kind == "fallback"]
    assert "frexp" in event.operator
    assert [f"on the {there.type.upper()} backend and will fall back" in str(each.message) for each in caught] == [True]


def refuses_what_it_lacks(there) -> None:
    said = raised(lambda: torch.histogram(torch.ones(2, device="musa"), bins=2))
    assert said.startswith(
        "NotImplementedError: Could not run 'aten::histogram.bin_ct' with arguments from the 'PrivateUse1'"
    )


def quietly_on_the_cpu(there) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.histogram(torch.ones(2, device="hpu"), bins=2)
    assert [event.operator for event in there.events if event.kind == "fallback"] == ["aten::histogram.bin_ct"]


def exchange(there, rank: int) -> dict[str, object]:
    """As one of two processes under the back end of the adapter."""
    import torch.distributed as dist

    def summed(dtype: torch.dtype = torch.float32, device: str = "npu", op: object = dist.ReduceOp.SUM) -> list[float]:
        x = torch.full((2,), rank + 1, dtype=dtype, device=device)
        dist.all_reduce(x, op=op)
        return x.tolist()

    def of_parallel_layers() -> list[float]:
        torch.manual_seed(0)
        layer = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1).npu())
        layer(torch.full((1, 2), rank + 1.0, device="npu")).sum().backward()
        return layer.module.weight.grad.flatten().tolist()

    def reduced_as_by_speculators() -> None:  # vllm-project/speculators#1116: 1.0 on rank 0, and 0 on the others
        dist.reduce(torch.tensor(1.0 if rank == 0 else 0, device="npu"), dst=0)

    gathered, objects = torch.empty(2, device="npu"), [None, None]
    dist.all_gather_into_tensor(gathered, torch.full((1,), float(rank), device="npu"))
    dist.all_gather_object(objects, f"rank {rank}")
    mixed = dist.new_group([0, 1], backend="cpu:gloo,npu:hccl")
    on_host = torch.ones(1)
    dist.all_reduce(on_host, group=mixed)
    return {
        "backend": dist.get_backend(),
        "float32": summed(),
        "int64": summed(torch.int64),
        "float64": raised(lambda: summed(torch.float64)),
        "uint8": raised(lambda: summed(torch.uint8)),
        "host": raised(lambda: summed(device="cpu")),
        "band": raised(lambda: summed(torch.int32, op=dist.ReduceOp.BAND)),
        "two dtypes": raised(reduced_as_by_speculators),
        "gathered": gathered.tolist(),
        "objects": objects,
        "mixed": on_host.tolist(),
        "ddp": of_parallel_layers() if there.engine == "native" else [1.5, 1.5],
        "refused": [event.operator for event in there.events if event.kind == "operator"],
    }


def rank_of_two(engine: str, rank: int, folder: str) -> None:
    import torch.distributed as dist

    with pretend("npu", engine=engine) as there:  # type: ignore[arg-type]
        dist.init_process_group("hccl", init_method=f"file://{folder}/store", rank=rank, world_size=2)
        said = exchange(there, rank)
        dist.destroy_process_group()
    assert "hccl" not in dist.Backend.backend_list
    Path(folder, f"{rank}.json").write_text(json.dumps(said), encoding="utf-8")


def closed(there) -> None:
    global left
    left = torch.ones(2, device=there.type)


def after(kind: str) -> None:
    """What is left when the device is closed: no accelerator, and tensors that can be brought back."""
    assert left.cpu().tolist() == [1, 1]
    assert not hasattr(torch, kind)
    assert f"torch_{kind}" not in sys.modules
    assert f"torch.{kind}" not in sys.modules
    assert torch.accelerator.current_accelerator() is None
    (torch.ones(2, requires_grad=True) * 2).sum().backward()
    assert [*torch.utils.data.DataLoader([1, 2], pin_memory=False)]
    assert not hasattr(torch.Tensor, f"is_{kind}") or kind == "hpu"
    assert "RuntimeError" in raised(lambda: torch.ones(2).pin_memory())
    if kind == "hpu":
        with pretend("cuda"):  # it has a key of its own
            assert torch.ones(2).cuda().sum().item() == 2
        return
    for other in {"cuda", "mlu" if kind == "npu" else "npu"}.difference(real_devices()):
        said = raised(lambda other=other: pretend(other).__enter__())
        assert said.startswith("PretendError") and f"'{kind}'" in said  # noqa: PT018
    with pretend(kind) as again:
        assert torch.ones(2, device=again.device).sum().item() == 2


def main(kind: str, engine: str, names: list[str]) -> None:
    for name in names:
        with pretend(f"{kind}:1", engine=engine) as there:  # type: ignore[arg-type]
            globals()[name](there)
    if "closed" in names:
        after(kind)
    print("done")


if __name__ == "__main__" and sys.argv[1] == "ranks":
    ranks = [multiprocessing.get_context("fork").Process(target=rank_of_two, args=(sys.argv[2], rank, sys.argv[3]))
             for rank in range(2)]  # fmt: skip
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
elif __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3].split(","))
