"""TorchMetrics' names on assay's counts: `from assay.compat import torchmetrics` in the place of `import torchmetrics`.

Every module of TorchMetrics has a counterpart here: `assay.compat.torchmetrics.classification`, `.functional`, and so on.
What is no metric, such as `MetricCollection` and the wrappers, is TorchMetrics' own and takes these metrics.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from assay.compat.torchmetrics_metric import TABLE, compatible_class, compatible_function
from assay.errors import ConfigError, describe
from assay.integrations.optional_packages import import_package

_ROOT = import_package("torchmetrics", "metrics of its names")
_COMMON = ("torchmetrics.aggregation", "torchmetrics.collections", "torchmetrics.metric", "torchmetrics.wrappers")


class CompatibleModule(ModuleType):
    """A module of TorchMetrics whose metrics are those of assay."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(f"{__name__.rpartition('.')[0]}.{original.__name__}", original.__doc__)
        self.__path__: list[str] = []  # so that modules in it can be imported
        self._original = original

    def __getattr__(self, name: str) -> Any:
        value = counterpart_of(self._original, name)
        setattr(self, name, value)  # the next look-up does not come here
        return value

    def __dir__(self) -> list[str]:
        return [name for name in dir(self._original) if not _instead(getattr(self._original, name))]


def counterpart_of(module: ModuleType, name: str) -> Any:
    """What a name of a module of TorchMetrics is here.

    Raises:
        AttributeError: TorchMetrics has no such name.
        ConfigError: it is a metric that assay has under another name or with other arguments.
    """
    original = getattr(module, name)
    if isinstance(original, ModuleType):
        return sys.modules.get(f"{_ABOVE}.{original.__name__}", original)
    if instead := _instead(original):
        do = f"Write {instead}; or import it from torchmetrics"
        raise ConfigError(describe(name, "a metric without a counterpart of its arguments", "one that has one", do))
    if getattr(original, "__name__", "") not in TABLE.entries:
        return original
    return compatible_class(original) if isinstance(original, type) else compatible_function(original)


def _instead(original: Any) -> str:
    """What to write in the place of a metric that has no counterpart here; empty for all else."""
    instead = TABLE.without.get(getattr(original, "__name__", ""), "")
    common = getattr(original, "__module__", "").startswith(_COMMON) or instead.startswith("keep it")
    return "" if common else instead


_ABOVE = __name__.rpartition(".")[0]

for _name in [name for name in sys.modules if name.startswith("torchmetrics.")]:
    sys.modules[f"{_ABOVE}.{_name}"] = CompatibleModule(sys.modules[_name])


def __getattr__(name: str) -> Any:
    return counterpart_of(_ROOT, name)


def __dir__() -> list[str]:
    return dir(_ROOT)
