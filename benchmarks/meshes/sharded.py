"""Whole, data parallel, fully sharded and tensor-parallel models, on meshes of one to three dimensions."""

from __future__ import annotations

from typing import Any

from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import ShardingStrategy

from benchmarks.meshes.configuration import Configuration, evaluated, simple
from benchmarks.meshes.models import (
    fsdp1,
    fully_sharded,
    mesh,
    network,
    parallel_on_two,
    right,
    samples,
    sharded_and_parallel,
    tensor_parallel,
    vocabulary_parallel,
    wrapped_layers,
)


def replica() -> nn.Module:
    return nn.parallel.DistributedDataParallel(network())


def _unnamed(size: int) -> Any:
    return init_device_mesh("cpu", (size,))


def _hybrid() -> nn.Module:
    strategy = ShardingStrategy.HYBRID_SHARD
    return wrapped_layers(device_mesh=mesh((2, 2), "dp_replicate dp_shard"), sharding_strategy=strategy)


CASES = (
    simple("whole model", 2, network, 64),
    simple("whole model", 2, network, 101),
    simple("whole model", 3, network, 101),
    simple("DistributedDataParallel", 2, replica, 101),
    simple("FSDP1, one unit", 2, fsdp1, 5, 2),
    simple("FSDP1, a unit a layer", 2, wrapped_layers, 5, 2),
    simple("FSDP1, use_orig_params", 2, lambda: wrapped_layers(use_orig_params=True), 101),
    simple("FSDP1, HYBRID_SHARD 2 × 2", 4, _hybrid, 101),
    simple("FSDP2", 2, fully_sharded, 64),
    simple("FSDP2", 2, fully_sharded, 5, 2),
    simple("FSDP2", 2, fully_sharded, 101),
    simple("FSDP2", 3, fully_sharded, 101),
    simple("FSDP2", 3, fully_sharded, 5, 2),
    simple("FSDP2, one batch for all", 4, fully_sharded, 5),
    simple("FSDP2", 8, fully_sharded, 5, 2),
    simple("HSDP 2 × 2", 4, lambda: fully_sharded(mesh((2, 2), "dp_replicate dp_shard")), 101, 16),
    simple("TP", 2, parallel_on_two, 64),
    simple("TP", 2, parallel_on_two, 101),
    simple("TP", 3, lambda: tensor_parallel(mesh((3,), "tp")), 101),
    simple("TP, mesh without names", 3, lambda: tensor_parallel(_unnamed(3)), 101),
    simple("TP, logits sharded over classes", 2, lambda: vocabulary_parallel(mesh((2,), "tp")), 101),
    simple("DP × TP 2 × 2", 4, lambda: tensor_parallel(mesh((2, 2), "dp tp")["tp"]), 64),
    simple("DP × TP 2 × 2", 4, lambda: tensor_parallel(mesh((2, 2), "dp tp")["tp"]), 101),
    simple("DP × TP 2 × 2, sharded over classes", 4, lambda: vocabulary_parallel(mesh((2, 2), "dp tp")["tp"]), 101),
    simple("DP × TP 2 × 3", 6, lambda: tensor_parallel(mesh((2, 3), "dp tp")["tp"]), 101),
    simple("FSDP2 × TP 2 × 2", 4, lambda: sharded_and_parallel((2, 2), "dp tp", "dp", "tp"), 101),
    simple("FSDP2 × TP 3 × 2", 6, lambda: sharded_and_parallel((3, 2), "dp tp", "dp", "tp"), 101),
    Configuration(
        'FSDP2 × TP, dimensions "x" and "y", 64/8',
        4,
        lambda rank, folder: evaluated(sharded_and_parallel((2, 2), "x y", "x", "y"), samples(64)),
        "'x' is not known",
    ),
    Configuration(
        'the same with mesh={"x": "fsdp", "y": "tp"}, 101/8',
        4,
        lambda rank, folder: evaluated(
            sharded_and_parallel((2, 2), "x y", "x", "y"), samples(101), mesh={"x": "fsdp", "y": "tp"}
        ),
        right(101),
    ),
    simple(
        "HSDP × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp_replicate dp_shard tp", "dp_replicate dp_shard", "tp"),
        101,
    ),
    simple(
        "HSDP × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp_replicate dp_shard tp", "dp_replicate dp_shard", "tp"),
        64,
    ),
    simple(
        "DP × FSDP2 × TP 2 × 2 × 2",
        8,
        lambda: sharded_and_parallel((2, 2, 2), "dp fsdp tp", "fsdp", "tp"),
        101,
    ),
)
