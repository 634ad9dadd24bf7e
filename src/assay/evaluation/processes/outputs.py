"""What a model whose parameters are of type `DTensor` returns, as plain tensors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.evaluation.processes.links import Group
from assay.meter.processes.distributed_tensors import first_largest, is_distributed, local_part, whole


@dataclass
class Outputs:
    """Makes plain tensors of outputs, all there on each process that calls it.

    Attributes:
        members: the processes that were given the same samples; empty where others have no parts.
        classes: of how many scores just the class with the highest one is counted; None where more is.
        gathered: whether scores over classes were gathered from several processes.
    """

    members: Group = ()
    classes: int | None = None
    gathered: bool = False

    def __call__(self, value: Any) -> Any:
        """A tensor that is all there on this process; anything else unchanged.

        Of scores that are sharded over classes just the class with the highest one, where no more is counted. Other
        parts are gathered: all members must call this.

        Args:
            value: an output.

        Raises:
            ConfigError: other processes have parts, too.
        """
        if is_distributed(value):
            check_members(value, self.members)
            if value.ndim > 1 and value.is_floating_point():
                sharded = {each.dim % value.ndim for each in value.placements if each.is_shard()}
                if sharded == {1} and value.shape[1] == self.classes:
                    return _labels(value)
                self.gathered = self.gathered or bool(sharded & {1, value.ndim - 1})
        return whole(value)


def check_members(value: Any, members: Group) -> None:
    """Raise where processes with other samples have parts of an output, too.

    Args:
        value: an output.
        members: the processes that were given the same samples.

    Raises:
        ConfigError: names all that have parts.
    """
    ranks = sorted(value.device_mesh.mesh.flatten().tolist()) if is_distributed(value) else []
    if not set(ranks) <= set(members):
        got = f"a DTensor on ranks {', '.join(map(str, ranks))}, which do not all have the same samples"
        do = "Return its local part (to_local()), or put it on the mesh of the tensor-parallel dimension"
        expected = f"one on {', '.join(map(str, members))}"
        raise ConfigError(describe("outputs of the model", got, expected, do))


def _labels(scores: Any) -> Tensor:
    """For each row of scores that are sharded over dimension 1 the class with the highest one."""
    part, classes = local_part(scores, "outputs of the model"), scores.shape[1]
    rows = part.tensor.detach().movedim(1, -1)
    labels = first_largest(rows.reshape(-1, rows.shape[-1]), part.start[1], classes, part.sharded[1])
    return labels.view(rows.shape[:-1])
