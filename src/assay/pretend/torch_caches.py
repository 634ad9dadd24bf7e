"""The caches in which torch and other libraries keep what torch answered about devices."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import torch

from assay.devices.kinds import PATTERN

_MODULES = (
    "accelerate.utils.imports",
    "lightning.fabric.accelerators.mps",
    "lightning_fabric.accelerators.mps",
    "transformers.utils.import_utils",
)
"""Modules of other libraries that cache answers; only those that were imported already are looked into."""

_CACHED: dict[Any, tuple[str, ...]] = {
    torch.backends.mps: (
        "is_available", "is_macos_or_newer", "is_macos13_or_newer", "get_name", "get_core_count",
    ),
    torch.cuda: ("_check_bf16_tensor_supported",),
    torch.xpu: ("device_count", "get_device_capability"),
    torch.accelerator: ("get_device_capability",),
}  # fmt: skip

_ABOUT_DEVICES = re.compile(rf"accelerator|(?:^|_)(?:{PATTERN})(?:_|$)|bf16|fp16|tf32|^is_available$")


def empty_answer_caches() -> None:
    """Empty every cache of an answer about devices, so that the next question is answered anew."""
    for function in (*_of_torch(), *_of_libraries()):
        function.cache_clear()


def _of_torch() -> Iterator[Any]:
    """torch's cached functions about devices; no release has all of them."""
    for owner, names in _CACHED.items():
        functions = (getattr(owner, name, None) for name in names)
        yield from (each for each in functions if hasattr(each, "cache_clear"))


def _of_libraries() -> Iterator[Any]:
    """The cached functions about devices of the imported modules, and of the classes that these define."""
    for module in filter(None, map(sys.modules.get, _MODULES)):
        classes = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
        for owner in (module, *classes):
            for name, value in vars(owner).items():
                function = getattr(value, "__func__", value)
                if hasattr(function, "cache_clear") and _ABOUT_DEVICES.search(name):
                    yield function
