"""``package.module:function``: what the name of a Python object stands for."""

from __future__ import annotations

import difflib
import importlib
import inspect
import os
import sys
from typing import Any

import torch
from torch import nn

from assay.errors import ConfigError, describe

_NEEDED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_PATH = "Check the spelling, and run it in the folder that the module is in"


def see_working_folder() -> None:
    """Let modules of the working folder be imported, as ``python -m`` does: a command has only its own folder there."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def import_object(named: str, option: str) -> Any:
    """The object that is named.

    Args:
        named: ``package.module:name``; the name may hold dots.
        option: what it is for, in messages.

    Example:
        >>> import_object("math:tau", "--data")
        6.283185307179586
    """
    module, _, name = named.partition(":")
    if not module or not name:
        expected = "package.module:function"
        if option in ("MODEL", "--data"):
            expected = f"an existing file or folder, or {expected}"
        do = "Check the path; a function in the file module.py of this folder is module:function"
        raise ConfigError(describe(option, repr(named), expected, do))
    try:
        value: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module + ".").startswith(error.name + "."):
            raise
        got = f"{named}, but no module {error.name}"
        raise ConfigError(describe(option, got, "an existing module", _PATH)) from error
    for each in name.split("."):
        if not hasattr(value, each):
            near = difflib.get_close_matches(each, vars(value), n=1)
            expected = f"{module}:{near[0]}" if near else "a name that is defined there"
            raise ConfigError(describe(option, f"{named}, but {module} has no {name}", expected, "Check the spelling"))
        value = getattr(value, each)
    return value


def construct(named: str, option: str, seed: int = 0) -> Any:
    """What a function or a class that is named gives; any other object unchanged."""
    value = import_object(named, option)
    return call_factory(value, named, seed) if inspect.isroutine(value) or inspect.isclass(value) else value


def construct_module(named: str, seed: int) -> nn.Module:
    """The module that the function of --model-factory gives."""
    module = construct(named, "--model-factory", seed)
    if not isinstance(module, nn.Module):
        raise ConfigError(describe(named, type(module).__name__, "a torch.nn.Module", "Return the module"))
    return module


def call_factory(function: Any, named: str, seed: int) -> Any:
    """What a function without arguments gives."""
    needed = [each.name for each in _parameters(function) if each.default is each.empty and each.kind in _NEEDED]
    if needed:
        do = "Name a function without arguments that makes it"
        raise ConfigError(describe(named, f"a function that needs {', '.join(needed)}", "none", do))
    torch.manual_seed(seed)
    return function()


def _parameters(function: Any) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return []
