"""Ignite's names on assay's counts: `from assay.compat import ignite` for `import ignite`.

`assay.compat.ignite.metrics` has Ignite's metrics; everything else, such as `ignite.engine`, is Ignite's own.
"""

from __future__ import annotations

from typing import Any

from assay.compat.drop_ins import IGNITE_GENERAL, DropIn, drop_ins
from assay.compat.ignite_metric import compatible_class
from assay.compat.modules import others_own, stand_for
from assay.integrations.optional_packages import import_package

_DROP_INS = drop_ins("ignite")


def replace(original: Any) -> Any:
    """What stands for an object of Ignite.

    A metric that assay has with other arguments only, or not at all, is the library's own, with a warning.
    """
    name = getattr(original, "__name__", "")
    module = getattr(original, "__module__", None) or ""
    found = _DROP_INS.get(name, DropIn(name))
    if not module.startswith("ignite.metrics") or name in IGNITE_GENERAL:
        return original
    if found.assay:
        return compatible_class(original)
    if not found.instead or found.instead.startswith("keep it"):
        return original
    return others_own(original, found.instead)


__getattr__, __dir__ = stand_for(import_package("ignite", "metrics of its names"), replace)
