from __future__ import annotations

import pytest

from assay.cli.named.metrics import open_metrics
from assay.errors import ConfigError
from assay.metrics import Accuracy, F1Score, MeanSquaredError


def test_metrics_by_name():
    assert open_metrics(
        ["accuracy:num_classes=10,average=macro", "f1:num_classes=3", "m=mean_squared:squared=false"]
    ) == {
        "accuracy": Accuracy(num_classes=10, average="macro"),
        "f1": F1Score(num_classes=3),
        "m": MeanSquaredError(squared=False),
    }


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ([], "--metrics: got none, expected one or more"),
        (["accurcy"], "--metrics: got 'accurcy', expected one of accuracy, auroc"),
        (["accuracy:classes=3"], "--metrics accuracy: got classes .*, expected arguments among num_classes"),
        (["accuracy:3"], "--metrics: got '3', expected argument=value"),
        (["accuracy", "accuracy:num_classes=3"], "--metrics: got accuracy twice, expected names that differ"),
    ],
)
def test_metrics_that_cannot_be(texts, message):
    with pytest.raises(ConfigError, match=message):
        open_metrics(texts)
