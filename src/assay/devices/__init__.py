"""The only rooms that ask which device this is; every answer carries its reason.

``capabilities`` says what a kind of device can do, ``selftest`` whether the one at hand does, ``policies`` what assay
does there and why, and ``placement`` moves tensors. Looking up a fact imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.devices.capabilities import Fact, facts, supports
    from assay.devices.placement import bring_together, move, to_host
    from assay.devices.policies import Policy, PolicyDecision, available, default_device, policy
    from assay.devices.selftest import SelfTest, self_test

__all__ = [
    "Fact",
    "Policy",
    "PolicyDecision",
    "SelfTest",
    "available",
    "bring_together",
    "default_device",
    "facts",
    "move",
    "policy",
    "self_test",
    "supports",
    "to_host",
]

_HOMES = {
    "capabilities": ("Fact", "facts", "supports"),
    "placement": ("bring_together", "move", "to_host"),
    "policies": ("PolicyDecision", "Policy", "available", "default_device", "policy"),
    "selftest": ("SelfTest", "self_test"),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
