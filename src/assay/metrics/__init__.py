"""Metrics: frozen descriptions of the tally that each needs, and of how its value is computed from it.

One module a family. The public names are those in the `__all__` of its modules; each is imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from assay._lazy import attach, homes

if TYPE_CHECKING:
    from assay.metrics.aggregation import *
    from assay.metrics.agreement import *
    from assay.metrics.arithmetic import *
    from assay.metrics.base import *
    from assay.metrics.classification import *
    from assay.metrics.classwise import *
    from assay.metrics.confusion import *
    from assay.metrics.correlation import *
    from assay.metrics.explained_variance import *
    from assay.metrics.operating_points import *
    from assay.metrics.per_output import *
    from assay.metrics.probabilities import *
    from assay.metrics.quantile import *
    from assay.metrics.rank_correlation import *
    from assay.metrics.ranking import *
    from assay.metrics.regression import *
    from assay.metrics.text import *

_HOMES = homes(__name__, __path__)
__all__ = sorted(_HOMES)
__getattr__, __dir__ = attach(__name__, _HOMES)
