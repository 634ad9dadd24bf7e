import torch
from torchmetrics import MeanMetric

from assay import Mean, Meter

metric, other = MeanMetric(), MeanMetric()
metric.update(1.0)
metric.compute()
other.update(3.0)
metric.merge_state(other)
print(f"TorchMetrics {metric.compute():.4f}")
print(f"mean of 1, 3 {(1 + 3) / 2:.4f}")

meter, other = Meter(mean=Mean()), Meter(mean=Mean())
meter.update(torch.tensor([1.0]))
meter.compute()
other.update(torch.tensor([3.0]))
print(f"assay        {(meter + other).compute()['mean']:.4f}")
