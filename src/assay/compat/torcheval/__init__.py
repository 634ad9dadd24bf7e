"""TorchEval's names on assay's counts: `from assay.compat import torcheval` for `import torcheval`.

`assay.compat.torcheval.metrics` has TorchEval's classes, `.functional` its functions and `.toolkit` what sums metrics
over processes. Everything else is TorchEval's own.
"""

from __future__ import annotations

from typing import Any

from assay.compat.for_torcheval.names import compatible_class, compatible_function, is_counted
from assay.compat.modules import stand_for
from assay.integrations.optional_packages import import_package


def replace(original: Any) -> Any:
    """What stands for an object of TorchEval."""
    module = getattr(original, "__module__", None) or ""
    if not module.startswith("torcheval.metrics") or not is_counted(original):
        return original
    return compatible_class(original) if isinstance(original, type) else compatible_function(original)


__getattr__, __dir__ = stand_for(import_package("torcheval", "metrics of its names"), replace)
