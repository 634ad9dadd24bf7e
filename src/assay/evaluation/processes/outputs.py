"""What a model whose parameters are of type `DTensor` returns, as plain tensors."""

from __future__ import annotations

from typing import Any

from assay.errors import ConfigError, describe
from assay.evaluation.processes.links import Group
from assay.meter.distributed_tensors import is_distributed


def whole(value: Any, members: Group) -> Any:
    """A tensor that is all there on this process; anything else unchanged.

    Parts that lie on several processes are gathered: all of them must call this.

    Args:
        value: an output.
        members: the processes that were given the same samples.

    Raises:
        ConfigError: other processes have parts, too.
    """
    if is_distributed(value):
        ranks = sorted(value.device_mesh.mesh.flatten().tolist())
        if not set(ranks) <= set(members):
            got = f"a DTensor on ranks {', '.join(map(str, ranks))}, which do not all have the same samples"
            do = "Return its local part (to_local()), or put it on the mesh of the tensor-parallel dimension"
            raise ConfigError(describe("outputs of the model", got, f"one on {', '.join(map(str, members))}", do))
        value = value.full_tensor()
    if type(value).__name__ == "AsyncCollectiveTensor":
        value = value.wait()
    return value
