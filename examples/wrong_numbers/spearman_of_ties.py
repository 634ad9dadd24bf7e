import torch
from scipy.stats import spearmanr
from torchmetrics.regression import SpearmanCorrCoef

from assay import SpearmanCorrCoef as Ours

x = torch.randn(200_000, generator=torch.Generator().manual_seed(0))
x[:100_000] = 0
y = x.clone()
y[100_000:] += torch.randn(100_000, generator=torch.Generator().manual_seed(1))
print(f"TorchMetrics {SpearmanCorrCoef()(x, y):.2f}")
print(f"SciPy        {spearmanr(x, y).statistic:.2f}")
print(f"assay        {Ours()(x, y):.2f}")
