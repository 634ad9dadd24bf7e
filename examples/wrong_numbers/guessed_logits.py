import torch
from torchmetrics.classification import BinaryAccuracy

from assay import Accuracy

logits, target = torch.tensor([-1.5, 0.2, 0.4]), torch.tensor([0, 1, 1])
metric = BinaryAccuracy()
metric.update(logits[:1], target[:1])
metric.update(logits[1:], target[1:])
print(f"TorchMetrics, 1 + 2 {metric.compute():.4f}")
print(f"TorchMetrics, 3     {BinaryAccuracy()(logits, target):.4f}")
print(f"by hand             {((logits > 0) == target).double().mean():.4f}")
print(f"assay               {Accuracy(logits=True)(logits, target):.4f}")
