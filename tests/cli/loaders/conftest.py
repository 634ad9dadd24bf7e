from __future__ import annotations

import pytest
from torch import nn

from assay.cli.loaders.models import Model
from assay.cli.options import EvaluateOptions


@pytest.fixture
def options():
    def make(data, **given):
        return EvaluateOptions(model="m:net", data=str(data), metrics=("accuracy",), **given)

    return make


@pytest.fixture
def model():
    return Model("net", "nets:net", nn.Linear(2, 3))
