"""A metric that kills the process that counts it, once."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path

from assay.metrics import Mean

BATCHES = 5


@dataclass(frozen=True)
class KillingMean(Mean):
    """A mean; the process that counts the fifth batch gets a kill -9.

    Args:
        folder: an empty folder, where batches are noted.
        spared: the id of the process that is not killed.
    """

    folder: str = ""
    spared: int = 0

    def per_sample(self, batch):
        if os.getpid() != self.spared:
            (Path(self.folder) / os.urandom(8).hex()).touch()
            if len(os.listdir(self.folder)) == BATCHES:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().per_sample(batch)
