import torch
from assay.compat.torchmetrics.functional import pairwise_euclidean_distance
from torchmetrics.functional import pairwise_euclidean_distance as of_torchmetrics

x, y = torch.tensor([[1e8, 1.0]]), torch.tensor([[1e8, 0.0]])
print(f"TorchMetrics {of_torchmetrics(x, y).item():.4f}")
print(f"by hand      {(x - y).norm():.4f}")
print(f"assay        {pairwise_euclidean_distance(x, y).item():.4f}")
