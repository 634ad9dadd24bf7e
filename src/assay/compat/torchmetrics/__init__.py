"""TorchMetrics' names on assay's counts: `from assay.compat import torchmetrics` for `import torchmetrics`.

Every module of TorchMetrics has a counterpart: `assay.compat.torchmetrics.classification`, `.functional` and so on.
`MetricCollection`, the wrappers and whatever is no metric are TorchMetrics' own, and take these metrics.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

from assay.compat.torchmetrics_metric import TABLE, compatible_class, compatible_function
from assay.errors import ConfigError, describe
from assay.integrations.optional_packages import import_package

_ABOVE = __name__.removesuffix("torchmetrics")
_GENERAL = ("torchmetrics.aggregation", "torchmetrics.collections", "torchmetrics.metric", "torchmetrics.wrappers")
OTHER_ARGUMENTS = ("DiceScore", "MeanIoU", "ROUGEScore", "SQuAD", "dice_score", "mean_iou", "rouge_score", "squad")
_ORIGINAL = import_package("torchmetrics", "metrics of its names")


class CompatibleModule(ModuleType):
    """A module of TorchMetrics whose metrics are those of assay."""

    def __init__(self, original: ModuleType) -> None:
        super().__init__(_ABOVE + original.__name__, original.__doc__)
        self.__path__: list[str] = []
        self._original = original

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = member(self._original, name)
        setattr(self, name, value)  # the next look-up does not come here
        return value

    def __dir__(self) -> list[str]:
        return dir(self._original)


class _CompatibleModules(MetaPathFinder, Loader):
    """Finds the modules in here, each of which stands for one of TorchMetrics."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return spec_from_loader(fullname, self, is_package=True) if fullname.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return CompatibleModule(import_module(spec.name.removeprefix(_ABOVE)))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is to be run."""


def member(module: ModuleType, name: str) -> Any:
    """What a name in a module of TorchMetrics is here.

    Raises:
        AttributeError: TorchMetrics has no such name.
        ConfigError: it is a metric that assay has with other arguments only, or not at all.
    """
    original = getattr(module, name)
    if isinstance(original, ModuleType):
        ours = original.__name__.startswith("torchmetrics.")
        return import_module(_ABOVE + original.__name__) if ours else original
    known = getattr(original, "__name__", "")
    if known not in TABLE.entries and known not in TABLE.without:
        return original
    instead = TABLE.entries[known].unsure if known in OTHER_ARGUMENTS else TABLE.without.get(known, "")
    if not instead:
        return compatible_class(original) if isinstance(original, type) else compatible_function(original)
    if original.__module__.startswith(_GENERAL) or instead.startswith("keep it"):
        return original
    do = f"Import it from torchmetrics itself, or use assay's metric ({instead})"
    raise ConfigError(describe(name, "a metric that has other arguments in assay", "one with these arguments", do))


def __getattr__(name: str) -> Any:
    return member(_ORIGINAL, name)


def __dir__() -> list[str]:
    return dir(_ORIGINAL)


sys.meta_path.append(_CompatibleModules())
