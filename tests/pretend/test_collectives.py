"""Collectives of tensors on pretend devices, by two processes under gloo: what a device has, refuses, and says."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from assay.pretend import pretend
from assay.pretend.native_engine.build import why_not
from assay.pretend.torch_patches import refuse_real
from ranks import processes

CALLS = ("all_reduce", "reduce_scatter", "gather_lists", "in_the_background", "ddp", "fsdp")


def called(name: str, rank: int, device: torch.device) -> list[float]:
    mine = torch.full((2,), rank + 1.0, device=device)
    if name == "all_reduce":
        dist.all_reduce(mine)
        return mine.tolist()
    if name == "reduce_scatter":
        part = torch.empty(1, device=device)
        dist.reduce_scatter(part, list(mine.split(1)))
        return part.tolist()
    if name == "gather_lists":
        both = [torch.empty_like(mine) for _ in range(2)]
        dist.all_gather(both, mine)
        return torch.cat(both).tolist()
    if name == "in_the_background":
        dist.all_reduce(mine, async_op=True).wait()
        return mine.tolist()
    torch.manual_seed(0)
    layer = torch.nn.Linear(2, 1).to(device)
    if name == "ddp":
        layer = torch.nn.parallel.DistributedDataParallel(layer)
    else:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard

        fully_shard(layer, mesh=init_device_mesh(device.type, (2,)))
    layer(mine[None]).sum().backward()
    grads = (parameter.grad for parameter in layer.parameters())
    return torch.cat([(x.full_tensor() if hasattr(x, "full_tensor") else x).flatten() for x in grads]).tolist()


def on(engine: str, kind: str, rank: int, names: tuple[str, ...]) -> list[str]:
    said = []
    with pretend(kind, engine=engine) as there:
        for name in names:
            try:
                said.append(str(called(name, rank, there.device)))
            except Exception as error:
                said.append(f"{type(error).__name__}: {error}")
    return said


def native_cuda(rank: int, size: int) -> list[str]:
    return on("native", "cuda", rank, CALLS)


def native_others(rank: int, size: int) -> list[str]:
    return [each for kind in ("xpu", "mps") for each in on("native", kind, rank, CALLS[:4])]


def python_cuda(rank: int, size: int) -> list[str]:
    return on("python", "cuda", rank, ("all_reduce", "gather_lists", "ddp"))


native = pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")


@native
def test_collectives_of_cuda_give_what_they_give_on_the_cpu(tmp_path):
    both = [3.0, 3.0]
    expected = [both, both[:1], [1.0, 1.0, 2.0, 2.0], both, [1.5, 1.5, 1.0], [1.5, 1.5, 1.0]]
    assert processes(native_cuda, 2, tmp_path) == [[str(each) for each in expected]] * 2


@native
def test_kinds_without_a_backend_or_without_collectives_say_so(tmp_path):
    for said in processes(native_others, 2, tmp_path):
        assert all("No backend type associated with device type xpu" in each for each in said[:4]), said
        assert all(each.startswith("NotImplementedError: The operator 'c10d::") for each in said[4:]), said


def test_the_python_engine_refuses_what_would_end_the_process(tmp_path):
    refuse_real("cuda")
    for all_reduced, gathered, ddp in processes(python_cuda, 2, tmp_path):
        assert (all_reduced, gathered) == ("[3.0, 3.0]", "[1.0, 1.0, 2.0, 2.0]")
        assert ddp.startswith("PretendError: DistributedDataParallel: got a tensor on cuda:0")
