import torch
from torch.utils.data import DistributedSampler
from torchmetrics.classification import BinaryAccuracy

preds, target = torch.tensor([1, 1, 1, 1, 0]), torch.ones(5, dtype=torch.long)
processes = []
for rank in range(3):
    metric = BinaryAccuracy()
    rows = list(DistributedSampler(target, num_replicas=3, rank=rank, shuffle=False))
    metric.update(preds[rows], target[rows])
    processes.append(metric)
for other in processes[1:]:
    processes[0].merge_state(other)
print(f"TorchMetrics {processes[0].compute():.4f}")
print(f"4 of 5       {4 / 5:.4f}")
