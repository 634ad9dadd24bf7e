import torch
from sklearn.metrics import label_ranking_loss
from torchmetrics.classification import MultilabelRankingLoss

from assay.metrics import MultilabelRankingLoss as Ours

generator = torch.Generator().manual_seed(0)
preds = torch.randint(4, (100, 5), generator=generator) / 4
target = torch.randint(2, (100, 5), generator=generator)
print(f"TorchMetrics {MultilabelRankingLoss(5)(preds, target):.4f}")
print(f"scikit-learn {label_ranking_loss(target, preds):.4f}")
print(f"assay        {Ours(num_labels=5)(preds, target):.4f}")
