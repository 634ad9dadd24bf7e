"""Metrics with one device bug each, at the line that says which; test_exercise.py sees that the audit finds just those.

A line that ends with ``# BUG rule`` is where the finding must point.
"""

from __future__ import annotations

import random

import torch
import torch.distributed

from assay.audit import Case


class Metric:
    """Counts right answers, and has no bug: its states go where it is moved, and its value stays there."""

    def __init__(self):
        self.device = torch.device("cpu")
        self.right = torch.zeros((), dtype=torch.int64)
        self.total = torch.zeros((), dtype=torch.int64)

    def to(self, device):
        self.device = torch.device(device)
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self

    def update(self, preds, target):
        self.right = self.right.to(preds.device) + (preds.argmax(-1) == target).sum()
        self.total = self.total.to(preds.device) + target.numel()

    def compute(self):
        return self.right / self.total


class MixedDevices(Metric):
    def update(self, preds, target):
        weights = torch.arange(preds.shape[-1])
        self.right = self.right + (preds.sum(0) * weights).sum().long()  # BUG mixed-devices


class DtypeMissing(Metric):
    def update(self, preds, target):
        self.right = self.right + preds.to(torch.float64).sum().long()  # BUG dtype-missing


class OperatorMissing(Metric):
    def compute(self):
        matrix = torch.eye(3, device=self.right.device) * self.right
        return torch.linalg.eigvals(matrix).abs().sum()  # BUG operator-missing


class DeviceError(Metric):
    def update(self, preds, target):
        self.right = self.right + int(preds.numpy().sum())  # BUG device-error


class ResultElsewhere(Metric):
    def compute(self):  # BUG result-elsewhere
        return torch.stack([self.right, self.total]).cpu()


class StateElsewhere(Metric):
    def __init__(self):
        super().__init__()
        self.seen = {"batches": torch.zeros(3)}  # BUG state-elsewhere


class MovedToDefault(Metric):
    def compute(self):
        whole = torch.stack([self.right, self.total]).cpu()
        return float(whole.to(self.device.type).sum())  # BUG moved-to-default-device


class DeviceSync(Metric):
    def update(self, preds, target):
        if (target < 0).any():  # BUG device-sync
            raise ValueError("negative")
        super().update(preds, target)


class NonBlocking(Metric):
    def compute(self):
        host = self.right.reshape(1).to("cpu", non_blocking=True)  # BUG non-blocking-copy
        return float(host.sum())


class Float32Counter(Metric):
    def __init__(self):
        super().__init__()
        self.total = torch.zeros(())  # BUG float32-counter


class Unseeded(Metric):
    def compute(self):  # BUG unseeded
        return self.right / self.total + random.SystemRandom().random()


class CpuCollective(Metric):
    def compute(self):
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            count = torch.tensor([1])
            torch.distributed.all_reduce(count)  # BUG cpu-collective
        return super().compute()


class KeepsItsValue(CpuCollective):
    kept = None

    def compute(self):
        if self.kept is None:
            self.kept = super().compute()
        return self.kept


class Nondeterministic(Metric):
    def update(self, preds, target):
        sums = preds.new_zeros(preds.shape[-1])
        sums.scatter_add_(0, target, preds[:, 0])  # BUG nondeterministic
        super().update(preds, target)


class NeedsArguments(Metric):
    def __init__(self, classes):
        super().__init__()


class Handled(Metric):
    def update(self, preds, target):
        try:
            preds = preds.double()  # BUG dtype-missing
        except TypeError:
            preds = preds.float()
        super().update(preds, target)


class Allowed(Metric):
    def update(self, preds, target):
        if (target < 0).any():  # assay: allow device-sync -- a check that is worth it
            raise ValueError("negative")
        # assay: allow device-sync -- twice
        if (target > 99).any():
            raise ValueError("too large")
        float(preds.sum())  # assay: allow device-sync
        super().update(preds, target)


BATCHES = tuple((torch.eye(4) + k / 8, torch.arange(4)) for k in range(3))


def audit_cases():
    yield Case("buggy.Metric", Metric, BATCHES)
    yield Case("buggy.MixedDevices", MixedDevices, BATCHES)
    yield Case("buggy.NeedsArguments", NeedsArguments, why_not="it needs to know the classes")
