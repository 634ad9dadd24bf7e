import math

import torch
from scipy.stats import chi2_contingency
from torchmetrics.nominal import CramersV

from assay.metrics import CramersV as Ours

preds = torch.tensor([0] * 50 + [1] * 50)
target = torch.tensor([0] * 30 + [1] * 20 + [0] * 10 + [1] * 40)
phi2 = chi2_contingency([[30, 20], [10, 40]], correction=False).statistic / 100
print(f"TorchMetrics {CramersV(num_classes=2)(preds, target):.4f}")
print(f"Bergsma      {math.sqrt((phi2 - 1 / 99) / (2 - 1 / 99 - 1)):.4f}")
print(f"assay        {Ours(num_classes=2)(preds, target):.4f}")
