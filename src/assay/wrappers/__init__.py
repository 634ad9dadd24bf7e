"""Several meters or values in time as one: a window, groups for a bootstrap, tasks, and the values of epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.wrappers.bootstrap import Bootstrap
    from assay.wrappers.multitask import Multitask
    from assay.wrappers.running import Running
    from assay.wrappers.tracker import Best, Tracker

__all__ = ["Best", "Bootstrap", "Multitask", "Running", "Tracker"]

_HOMES = {
    "bootstrap": ("Bootstrap",),
    "multitask": ("Multitask",),
    "tracker": ("Best", "Tracker"),
    "running": ("Running",),
}

__getattr__, __dir__ = attach(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}
)
