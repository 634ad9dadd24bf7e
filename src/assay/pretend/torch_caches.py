"""The caches in which torch and other libraries keep what torch answered about devices."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import torch

_MODULES = (
    "accelerate.utils.imports",
    "lightning.fabric.accelerators.mps",
    "lightning_fabric.accelerators.mps",
    "transformers.utils.import_utils",
)
"""Modules of other libraries that cache answers; only those that were imported already are looked into."""

_ABOUT_DEVICES = re.compile(r"accelerator|cuda|mps|xpu|bf16|fp16|tf32|^is_available$")


def empty_answer_caches() -> None:
    """Empty every cache of an answer about devices, so that the next question is answered anew."""
    mps = torch.backends.mps
    cached = (
        mps.is_available, mps.is_macos_or_newer, mps.is_macos13_or_newer, mps.get_name, mps.get_core_count,
        torch.cuda._check_bf16_tensor_supported, torch.xpu.get_device_capability,
        torch.accelerator.get_device_capability, *_of_libraries(),
    )  # fmt: skip
    for function in cached:
        function.cache_clear()


def _of_libraries() -> Iterator[Any]:
    """The cached functions about devices of the imported modules, and of the classes that these define."""
    for module in filter(None, map(sys.modules.get, _MODULES)):
        classes = [c for c in vars(module).values() if isinstance(c, type) and c.__module__ == module.__name__]
        for owner in (module, *classes):
            for name, value in vars(owner).items():
                function = getattr(value, "__func__", value)
                if hasattr(function, "cache_clear") and _ABOUT_DEVICES.search(name):
                    yield function
