import torch
from torchmetrics.retrieval import RetrievalMRR

from assay.metrics import RetrievalMRR as Ours

preds, target, query = torch.tensor([-1.0, -2.0]), torch.tensor([1, 0]), torch.tensor([0, 0])
print(f"TorchMetrics        {RetrievalMRR()(preds, target, indexes=query):.4f}")
print(f"the first is 1 of 1 {1 / 1:.4f}")
print(f"assay               {Ours()(preds, target, indexes=query):.4f}")
