import torch
from torchmetrics.classification import BinaryFairness

from assay.metrics import EqualOpportunityRatio

preds, target = torch.tensor([1.0, 0, 1, 0, 0, 0]), torch.tensor([1, 1, 1, 1, 0, 0])
groups = torch.tensor([0, 0, 1, 1, 2, 2])
((_, ratio),) = BinaryFairness(num_groups=3, task="equal_opportunity")(preds, target, groups).items()
print(f"TorchMetrics      {ratio:.4f}")
print(f"of the other two  {(1 / 2) / (1 / 2):.4f}")
print(f"assay             {EqualOpportunityRatio()(preds, target, groups=groups):.4f}")
