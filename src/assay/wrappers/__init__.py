"""Several meters or values in time as one: a window, groups for a bootstrap, tasks, and the values of epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach

if TYPE_CHECKING:
    from assay.wrappers.bootstrap import Bootstrap as Bootstrap
    from assay.wrappers.multitask import Multitask as Multitask
    from assay.wrappers.running import Running as Running
    from assay.wrappers.tracker import Best as Best
    from assay.wrappers.tracker import Tracker as Tracker

__all__, __getattr__, __dir__ = attach(__name__)
