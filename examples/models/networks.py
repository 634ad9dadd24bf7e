"""Networks for the commands of the README, which name them as ``examples.models.networks:classifier``.

assay quantize examples.models.networks:classifier --scheme int4 --device mps --plan
"""

from torch import nn


def classifier() -> nn.Module:
    """An untrained classifier of 64 features."""
    return nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10))
