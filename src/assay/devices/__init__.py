"""The only rooms that ask which device this is; every answer carries its reason.

``capabilities`` says what a kind of device can do, ``selftest`` whether the one at hand does, ``policies`` what assay
does there and why, and ``placement`` moves tensors. Looking up a fact imports no torch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.devices.capabilities import Fact as Fact
    from assay.devices.capabilities import facts as facts
    from assay.devices.capabilities import supports as supports
    from assay.devices.placement import bring_together as bring_together
    from assay.devices.placement import move as move
    from assay.devices.placement import to_host as to_host
    from assay.devices.policies import Policy as Policy
    from assay.devices.policies import PolicyDecision as PolicyDecision
    from assay.devices.policies import available as available
    from assay.devices.policies import default_device as default_device
    from assay.devices.policies import policy as policy
    from assay.devices.selftest import SelfTest as SelfTest
    from assay.devices.selftest import self_test as self_test

__all__, __getattr__, __dir__ = attach(__name__)
