import torch
from sklearn.metrics import jaccard_score
from torchmetrics.functional.classification import multilabel_jaccard_index

from assay.metrics import JaccardIndex

target = torch.tensor([[1, 1, 0], [1, 0, 1], [1, 1, 1]])
preds = torch.tensor([[1, 1, 0], [1, 1, 1], [1, 1, 1]])
print(f"TorchMetrics {multilabel_jaccard_index(preds, target, 3, average='micro', ignore_index=0):.4f}")
print(f"scikit-learn {jaccard_score(target[target != 0], preds[target != 0]):.4f}")
print(f"assay        {JaccardIndex(num_labels=3, average='micro', ignore_index=0)(preds, target):.4f}")
