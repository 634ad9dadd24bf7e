import torch
from torchmetrics import MeanMetric

from assay import Mean, Meter

values, weights = torch.tensor([1.0, 3.0]), torch.tensor([3.0, 1.0])
meter = Meter(mean=Mean(), weighted=True)
meter.update(values, weights=weights)
print(f"TorchMetrics {MeanMetric(nan_strategy='disable')(values, weights):.4f}")
print(f"by hand      {(1 * 3 + 3 * 1) / 4:.4f}")
print(f"assay        {meter.compute()['mean']:.4f}")
