import torch
from sklearn.metrics import roc_auc_score
from torchmetrics.classification import BinaryAUROC

from assay import AUROC

generator = torch.Generator().manual_seed(0)
target = torch.randint(2, (20_000,), generator=generator)
logits = 20 + 3 * torch.randn(20_000, generator=generator) + 1.5 * target
print(f"TorchMetrics {BinaryAUROC()(logits, target):.3f}")
print(f"scikit-learn {roc_auc_score(target, logits):.3f}")
print(f"assay        {AUROC(logits=True)(logits, target):.3f}")
