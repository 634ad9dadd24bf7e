"""Which device an evaluation runs on, and what may be done with its batches."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from assay.devices.capabilities import supports
from assay.devices.policies import PolicyDecision, as_device, available, policy
from assay.errors import ConfigError, describe


@dataclass(frozen=True)
class DeviceAssignment:
    """Where to run, and how batches get there."""

    device: PolicyDecision[torch.device]  # the device, with its index
    pin: PolicyDecision[bool]  # whether a data loader puts its batches into memory that the device can read
    non_blocking: PolicyDecision[bool]  # whether a copy from such memory may be asynchronous


def assign(device: str | torch.device, at: set[torch.device], local_rank: int | None = None) -> DeviceAssignment:
    """Decide where to run.

    Args:
        device: a device, or ``"auto"``.
        at: the devices on which the model is now.
        local_rank: the number of this process among those of this machine; None where there is but one.

    Raises:
        ConfigError: there is no such device here.

    Example:
        >>> assign("cpu", set()).device.reason
        'asked for'
    """
    chosen = _decide(str(device), at, local_rank)
    rule = policy(chosen.value)
    pinned = supports(chosen.value, "pinned_memory")
    pin = rule.non_blocking.value and pinned.supported is True
    reason = "copies from it need not wait" if pin else pinned.why or rule.non_blocking.reason
    return DeviceAssignment(chosen, PolicyDecision(pin, reason), rule.non_blocking)


def _decide(name: str, at: set[torch.device], local_rank: int | None) -> PolicyDecision[torch.device]:
    accelerators = [device for device in available() if device.type != "cpu"]
    elsewhere = [device for device in at if device.type != "cpu"]
    if name == "auto":
        if elsewhere:
            return PolicyDecision(min(elsewhere, key=str), "the model is there")
        if not accelerators:
            return PolicyDecision(torch.device("cpu"), "there is no accelerator here")
        return _of_rank(accelerators, local_rank, "the first accelerator of this machine")
    device = as_device(name)
    if device.type == "cpu":
        return PolicyDecision(torch.device("cpu"), "asked for")
    same = [each for each in accelerators if each.type == device.type]
    if not same or (device.index is not None and device not in same):
        here = ", ".join(map(str, available()))
        raise ConfigError(describe("device", repr(name), f"one of this machine ({here})", "Use one of those"))
    return PolicyDecision(device, "asked for") if device.index is not None else _of_rank(same, local_rank, "asked for")


def _of_rank(devices: list[torch.device], local_rank: int | None, reason: str) -> PolicyDecision[torch.device]:
    if local_rank is None:
        return PolicyDecision(devices[0], reason)
    return PolicyDecision(devices[local_rank % len(devices)], f"{reason}; process {local_rank} of this machine")
