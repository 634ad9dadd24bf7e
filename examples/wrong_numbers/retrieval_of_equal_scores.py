import torch
from torchmetrics.retrieval import RetrievalMRR

from assay.metrics import RetrievalMRR as Ours

preds, target, query = torch.full((4,), 0.5), torch.tensor([1, 0, 0, 0]), torch.zeros(4, dtype=torch.long)
print(f"TorchMetrics            {RetrievalMRR()(preds, target, indexes=query):.4f}")
print(f"TorchMetrics, backwards {RetrievalMRR()(preds, target.flip(0), indexes=query):.4f}")
print(f"mean over all orders    {(1 + 1 / 2 + 1 / 3 + 1 / 4) / 4:.4f}")
print(f"assay                   {Ours()(preds, target, indexes=query):.4f}")
print(f"assay, backwards        {Ours()(preds, target.flip(0), indexes=query):.4f}")
