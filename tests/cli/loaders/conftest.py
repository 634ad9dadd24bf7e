from __future__ import annotations

import pytest
from torch import nn

from assay.cli.loaders.named_model import Model
from assay.cli.options.measurement import EvaluateCommand


@pytest.fixture
def options():
    def make(data, **given):
        return EvaluateCommand(model="m:net", data=str(data), metrics=("accuracy",), **given)

    return make


@pytest.fixture
def model():
    return Model("net", "nets:net", nn.Linear(2, 3))
