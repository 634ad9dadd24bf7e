"""Every exception and warning that assay raises, and the one form their messages have.

::

    AssayError(Exception)
    ├── InputError(ValueError)           the arguments of a call cannot be measured
    │   ├── ShapeError                   shapes that do not belong together
    │   ├── DtypeError                   a dtype that has no meaning here
    │   ├── DeviceError                  tensors on several devices, under strict=True
    │   └── InvalidValuesError                  bad values (a label out of range, NaN), found when reading
    ├── ConfigError(ValueError)          an invalid description: unknown average, impossible class count
    ├── CapacityError                    a counter or a sum would leave the range in which it is exact
    ├── StateError                       a state that cannot be used: cut short, another version, another metric
    │   ├── UnknownMetricError           a metric that cannot be made from its description in a file
    │   └── DeviceFaultError             counts that break a law of all sound counts: a device or a copy is at fault
    ├── SyncError                        ranks that do not agree, or a collective that failed
    └── MissingDependencyError(ImportError)   an optional package is absent; names the extra that brings it

    AssayWarning(UserWarning)
    ├── PlacementWarning                 a tensor was on another device and has been moved
    ├── InvalidValuesWarning                    bad values were found when reading and left out
    ├── KernelWarning                    a kernel does not run or counts wrongly, so torch's operators count
    ├── RoundingWarning                  the value may be further from the exact one than its metric states
    └── NoDataWarning                    nothing was counted, or nothing that defines the value, so it is NaN
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from types import FrameType

__all__ = [
    "AssayError",
    "AssayWarning",
    "CapacityError",
    "ConfigError",
    "DeviceError",
    "DeviceFaultError",
    "DtypeError",
    "InputError",
    "InvalidValuesError",
    "InvalidValuesWarning",
    "KernelWarning",
    "MissingDependencyError",
    "NoDataWarning",
    "PlacementWarning",
    "RoundingWarning",
    "ShapeError",
    "StateError",
    "SyncError",
    "UnknownMetricError",
    "calling_frame",
    "describe",
    "warn",
]


class AssayError(Exception):
    """The base of every error that assay raises on purpose."""


class InputError(AssayError, ValueError):
    """The arguments of a call cannot be measured."""


class ShapeError(InputError):
    """The shapes of the arguments do not belong together.

    Attributes:
        arguments: arguments of a metric, by name, with which it could count these shapes; empty where none are known.
    """

    def __init__(self, *args: object, arguments: Mapping[str, object] | None = None) -> None:
        super().__init__(*args)
        self.arguments = dict(arguments or {})


class DtypeError(InputError):
    """A dtype has no meaning for this argument."""


class DeviceError(InputError):
    """Tensors sit on several devices and the caller asked for ``strict=True``."""


class InvalidValuesError(InputError):
    """Invalid values (a label out of range, a NaN score) were counted; `compute` raises it."""


class ConfigError(AssayError, ValueError):
    """The description of a metric, a tally or a meter is invalid."""


class CapacityError(AssayError):
    """A counter or an exact sum would leave the range in which it is exact."""


class StateError(AssayError):
    """A stored or merged state cannot be used: cut short, of another version, or of another metric."""


class UnknownMetricError(StateError):
    """A file has a metric that cannot be made from its description: a class of the caller's, or one with a function."""


class DeviceFaultError(StateError):
    """What was counted breaks a law that all sound counts satisfy, so a device, a copy or a file is at fault.

    Attributes:
        where: where the counts come from, such as "device mps:0".
        tally: what was counted; None where that is not known.
        law: the law that is broken.
    """

    def __init__(self, *args: object, where: str = "", tally: object = None, law: str = "") -> None:
        super().__init__(*args)
        self.where, self.tally, self.law = where, tally, law


class SyncError(AssayError):
    """The ranks do not agree, or a collective failed."""


class MissingDependencyError(AssayError, ImportError):
    """An optional package is absent.

    Args:
        package: the name of the package that could not be imported.
        extra: the extra of assay that brings it.
        purpose: what it is needed for.

    Example:
        >>> print(MissingDependencyError("scikit-learn", extra="demo", purpose="the demo's data sets"))
        scikit-learn: got no such package, expected it for the demo's data sets. Run: pip install "assay[demo]".
    """

    def __init__(self, package: str, *, extra: str, purpose: str) -> None:
        self.package, self.extra, self.purpose = package, extra, purpose
        do = f'Run: pip install "assay[{extra}]"'
        super().__init__(describe(package, "no such package", f"it for {purpose}", do), name=package)

    def __reduce__(self) -> tuple[object, ...]:
        return _missing_dependency, (self.package, self.extra, self.purpose)


def _missing_dependency(package: str, extra: str, purpose: str) -> MissingDependencyError:
    return MissingDependencyError(package, extra=extra, purpose=purpose)


@contextmanager
def needing(package: str, extra: str, purpose: str) -> Iterator[None]:
    """Inside, imports of an optional package raise an error that names the extra of assay that brings it.

    Args:
        package: the module that is imported.
        extra: the extra.
        purpose: what it is needed for.

    Raises:
        MissingDependencyError: the package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package:
            raise
        raise MissingDependencyError(package, extra=extra, purpose=purpose) from error


class AssayWarning(UserWarning):
    """The base of every warning that assay gives."""


class PlacementWarning(AssayWarning):
    """A tensor was on another device than the predictions and has been moved."""


class InvalidValuesWarning(AssayWarning):
    """Invalid values were left out of a value."""


class KernelWarning(AssayWarning):
    """A kernel of assay does not run, or counted wrongly in its self-test, so torch's operators count instead."""


class RoundingWarning(AssayWarning):
    """The value may be further from the exact one than its metric states, as the samples were rounded."""


class NoDataWarning(AssayWarning):
    """Nothing has been counted, or nothing that defines the value (one class, a constant), so it is NaN."""


def describe(what: str, got: object, expected: str, do: str) -> str:
    """Write a message in the one form that all messages of assay have.

    ``what: got …, expected …. Do ….``

    Args:
        what: the argument or the thing that is wrong, as the caller names it.
        got: what was found.
        expected: what would have been right.
        do: what the caller can do about it, as a sentence that begins with a verb.

    Returns:
        One line that ends with a full stop.

    Example:
        >>> describe("preds", "shape (3,)", "shape (3, 10)", "Pass one score per class")
        'preds: got shape (3,), expected shape (3, 10). Pass one score per class.'
    """
    return f"{what}: got {got}, expected {expected.rstrip('.')}. {do.rstrip('.')}."


def calling_frame() -> FrameType:
    """The frame that called assay: the first one outside of it and of libraries whose decorators may stand between."""
    files = [__file__, *(getattr(sys.modules.get(name), "__file__", None) for name in ("torch", "torchmetrics"))]
    inside = tuple(os.path.dirname(file) + os.sep for file in files if file)
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(inside):
        frame = frame.f_back
    return frame


_TAKEN: ContextVar[tuple[type[Warning], list[tuple[str, type[Warning]]]] | None] = ContextVar("taken", default=None)


def taken_warnings(category: type[Warning]) -> AbstractContextManager[list[tuple[str, type[Warning]]]]:
    """Inside, what assay warns of in this thread is put into a list, and nobody else sees it.

    Unlike `warnings.catch_warnings` this takes little time, and changes nothing for other threads.

    Args:
        category: the class of the warnings that are taken.

    Example:
        >>> with taken_warnings(NoDataWarning) as taken:
        ...     warn("no samples", NoDataWarning)
        >>> [message for message, _ in taken]
        ['no samples']
    """
    return _Taken(category)


class _Taken:  # a generator takes several times as long
    def __init__(self, category: type[Warning]) -> None:
        self._category = category

    def __enter__(self) -> list[tuple[str, type[Warning]]]:
        taken: list[tuple[str, type[Warning]]] = []
        self._before = _TAKEN.set((self._category, taken))
        return taken

    def __exit__(self, *raised: object) -> None:
        _TAKEN.reset(self._before)


def warn(message: str, category: type[Warning]) -> None:
    """Warn, at the line that called assay: that is where something can be done about it."""
    if (taking := _TAKEN.get()) is not None and issubclass(category, taking[0]):
        taking[1].append((message, category))
        return
    frame = calling_frame()
    registry = frame.f_globals.setdefault("__warningregistry__", {})  # so that a line warns once, as Python does it
    name = frame.f_globals.get("__name__") or "<string>"  # as Python has it: without a name, nothing would be shown
    warnings.warn_explicit(message, category, frame.f_code.co_filename, frame.f_lineno, name, registry)


def plural(count: int, name: str) -> str:
    """A count with its noun.

    Example:
        >>> plural(1, "rule"), plural(2000, "rule")
        ('1 rule', '2,000 rules')
    """
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name}s"
