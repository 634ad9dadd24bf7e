"""Checks for a block of code: that the host never waits for the device in it, that no float64 appears on a device."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    pass

_HERE = str(Path(__file__))
_WIDE = (torch.float64, torch.complex128)
_MASKS = (torch.bool, torch.uint8)
_LAST_SHOWN = 8

# Operators that read a value on the host, or whose output's shape depends on values. Which of them wait on a device is
# measured: a test runs each on a pretend device and holds its events against this table.
SYNCS = {
    "_local_scalar_dense": "reads a value",
    "equal": "reads whether all are equal",
    "is_nonzero": "reads a value",
    "nonzero": "reads how many there are",
    "masked_select": "reads how many there are",
    "bincount": "reads the largest value",
    "_unique": "reads how many there are",
    "_unique2": "reads how many there are",
    "unique_dim": "reads how many there are",
    "unique_consecutive": "reads how many there are",
    "unique_dim_consecutive": "reads how many there are",
    "repeat_interleave": "reads the length of the output",
}
