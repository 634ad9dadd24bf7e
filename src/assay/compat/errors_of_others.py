"""Errors that are both assay's and those of another library, so that handlers written for either catch them."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from assay.errors import InputError, InvalidValuesError, StateError


def error_as_there(error: InputError, call: Callable[[], Any], library: str = "TorchMetrics") -> InputError:
    """The error with the class and the text that another library has for the same arguments, next to assay's own.

    Args:
        error: what assay raised.
        call: does the same with the library. If it raises nothing, the error is unchanged.
        library: its name in the text.

    Example:
        >>> def refuse():
        ...     raise TypeError("Expected labels.")
        >>> both = error_as_there(InputError("preds: got floats, expected labels. Pass labels."), refuse)
        >>> isinstance(both, InputError), isinstance(both, TypeError), str(both)
        (True, True, 'preds: got floats, expected labels. Pass labels. TorchMetrics: Expected labels.')
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call()
    except (TypeError, ValueError, RuntimeError) as there:
        text = str(error) if str(there) in str(error) else f"{error} {library}: {there}"
        return _made(type(error), type(there), text)
    except Exception:
        return error
    return error


@functools.cache
def _of_both(own: Any, there: Any) -> type[InputError]:
    """A class of errors that is both."""
    if issubclass(own, there):
        return own  # type: ignore[no-any-return]
    body = {"__reduce__": lambda self: (_made, (own, there, str(self))), "__module__": own.__module__}
    kind: type[InputError] = type(own.__name__, (own, there), body)
    return kind


def _made(own: Any, there: Any, text: str) -> InputError:
    return _of_both(own, there)(text)


class MergeError(StateError, ValueError):
    """A state that cannot be added, for which TorchMetrics raises a `ValueError`."""


class MergeRefusedError(StateError, RuntimeError):
    """A metric whose states cannot be added, for which TorchMetrics raises a `RuntimeError`."""


class FewSamplesError(InvalidValuesError, ValueError):
    """Too few samples for a value, for which TorchMetrics raises a `ValueError`."""


class NanValuesError(InvalidValuesError, RuntimeError):
    """NaN under `nan_strategy="error"`, for which TorchMetrics raises a `RuntimeError`."""
