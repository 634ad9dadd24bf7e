import torch
from torchmetrics.classification import MulticlassAccuracy

from assay import Accuracy
from assay.errors import InvalidValuesError

preds, target = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 7])
print(f"TorchMetrics {MulticlassAccuracy(3, average='micro')(preds, target):.4f}")
try:
    Accuracy(num_classes=3)(preds, target)
except InvalidValuesError as error:
    print(f"assay        {type(error).__name__}")
