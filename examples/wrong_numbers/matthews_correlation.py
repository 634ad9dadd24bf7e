import math

import torch
from torchmetrics.classification import BinaryMatthewsCorrCoef

from assay import Meter
from assay.metrics import MatthewsCorrCoef

(tn, fp), (fn, tp) = matrix = [[4_000_000_000, 1_000_000_000], [1_000_000_000, 2_000_000_000]]
metric = BinaryMatthewsCorrCoef()
metric.update(torch.tensor([0]), torch.tensor([0]))
metric.confmat = torch.tensor(matrix)
print(f"TorchMetrics {metric.compute():.4f}")
print(f"integers     {(tp * tn - fp * fn) / math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)):.4f}")
meter = Meter(mcc=MatthewsCorrCoef(), weighted=True)
counts = torch.tensor(matrix, dtype=torch.float64).flatten()
meter.update(torch.tensor([0, 1, 0, 1]), torch.tensor([0, 0, 1, 1]), weights=counts)
print(f"assay        {meter.compute()['mcc']:.4f}")
