"""Ignite's names on assay's counts: `from assay.compat import ignite` for `import ignite`.

`assay.compat.ignite.metrics` has Ignite's metrics; everything else, such as `ignite.engine`, is Ignite's own.
"""

from __future__ import annotations

from assay.compat.for_ignite.names import replace
from assay.compat.modules import stand_for
from assay.integrations.optional_packages import import_package

__getattr__, __dir__ = stand_for(import_package("ignite", "metrics of its names"), replace)
