import torch
from torchmetrics.classification import BinaryCalibrationError

from assay import CalibrationError

generator = torch.Generator().manual_seed(0)
preds = 0.99 + 0.0099 * torch.rand(1_000_000, generator=generator)
target = (torch.rand(1_000_000, generator=generator) < preds).long()
metric = BinaryCalibrationError(n_bins=15)
for batch in zip(preds.split(1000), target.split(1000), strict=True):
    metric.update(*batch)
print(f"TorchMetrics     {metric.compute():.1e}")
print(f"one bin, float64 {(preds.double().mean() - target.double().mean()).abs():.1e}")
print(f"assay            {CalibrationError()(preds, target):.1e}")
