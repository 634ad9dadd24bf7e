import torch
from torchmetrics.regression import MeanSquaredError

from assay import MeanSquaredError as Ours

preds, target = torch.zeros(200_000, dtype=torch.float16), torch.ones(200_000, dtype=torch.float16)
print(f"TorchMetrics {MeanSquaredError()(preds, target):.4f}")
print(f"float64      {(preds.double() - target.double()).square().mean():.4f}")
print(f"assay        {Ours()(preds, target):.4f}")
