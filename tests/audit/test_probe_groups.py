"""Collectives of groups that a metric makes itself, and the device that a process of several has chosen."""

from __future__ import annotations

import torch
import torch.distributed as dist

from assay.audit.cases.case import Case
from assay.audit.cases.probes import collectives
from assay.pretend.session import pretend


class Counted:
    """Sums over processes in a group of the backend that it is given; ``None`` is the usual group."""

    def __init__(self, backend: str | None):
        self.backend = backend
        self.current = -1

    def compute(self):
        group = dist.new_group(backend=self.backend) if self.backend else None
        self.current = torch.accelerator.current_device_index()
        total = torch.ones(3)
        dist.all_reduce(total, group=group)
        if group is not None:
            dist.destroy_process_group(group)
        return total


def seen_with(backend: str | None) -> list[str]:
    metric = Counted(backend)
    with pretend("cuda:1") as pretended:
        found = collectives(Case("Counted", lambda: metric), metric, pretended)
        assert metric.current == 1, "a process of several has chosen its device"
        assert torch.accelerator.current_device_index() == 0
    return [what for _, what in found]


def test_a_group_of_gloo_takes_cpu_tensors():
    assert seen_with("gloo") == []


def test_the_usual_group_and_groups_of_its_backend_take_none():
    text = "all_reduce is given a CPU tensor of shape (3,); nccl takes tensors of cuda only"
    assert seen_with(None) == [text]
    assert seen_with("nccl") == [text]
