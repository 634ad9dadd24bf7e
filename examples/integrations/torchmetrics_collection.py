"""assay's metrics where TorchMetrics' are expected, and one of TorchMetrics in a meter of assay.

python examples/integrations/torchmetrics_collection.py
"""

import torch
from _digits import HELD_OUT, METRICS, expected, loader, trained
from torchmetrics import Metric
from torchmetrics.classification import MulticlassCalibrationError

from assay import Meter
from assay.integrations import as_torchmetrics, from_torchmetrics

model = trained()
collection = as_torchmetrics(METRICS)
assert all(isinstance(metric, Metric) for metric in collection.values())

calibration = MulticlassCalibrationError(num_classes=10, n_bins=15)
meter = Meter(calibration=from_torchmetrics(calibration, preds=(10,)))
with torch.no_grad():
    for images, target in loader():
        collection.update(model(images), target)
        meter.update(model(images).softmax(-1), target)

found = {name: value.item() for name, value in collection.compute().items()}  # float32, as TorchMetrics' values are
assert found == {name: torch.tensor(value).item() for name, value in expected(model).items()}
print(found, {name: round(value.item(), 4) for name, value in meter.compute().items()})
print(f"{len(HELD_OUT)} samples")
