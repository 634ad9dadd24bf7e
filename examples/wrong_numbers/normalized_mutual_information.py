import torch
from sklearn.metrics import normalized_mutual_info_score
from torchmetrics.clustering import NormalizedMutualInfoScore

from assay.metrics import NormalizedMutualInfoScore as Ours

same = torch.zeros(5, dtype=torch.long)
print(f"TorchMetrics {NormalizedMutualInfoScore()(same, same):.4f}")
print(f"scikit-learn {normalized_mutual_info_score(same, same):.4f}")
print(f"assay        {Ours()(same, same):.4f}")
