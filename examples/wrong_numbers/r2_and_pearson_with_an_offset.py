import numpy
import torch
from ignite.metrics.regression import PearsonCorrelation
from sklearn.metrics import r2_score
from torcheval.metrics import R2Score as TorchEvalR2
from torchmetrics.regression import R2Score

from assay import PearsonCorrCoef
from assay import R2Score as Ours

generator = torch.Generator().manual_seed(0)
target = 1e4 + torch.randn(10_000, generator=generator)
preds = 1e4 + torch.randn(10_000, generator=generator)
print(f"TorchMetrics, R² ~ {R2Score()(preds, target):.2f}")
print(f"TorchEval, R²    ~ {TorchEvalR2().update(preds, target).compute():.2f}")
print(f"scikit-learn, R²   {r2_score(target.double(), preds.double()):.2f}")
print(f"assay, R²          {Ours()(preds, target):.2f}")

x = 1000 + torch.randn(10_000, generator=torch.Generator().manual_seed(0))
y = x + torch.randn(10_000, generator=torch.Generator().manual_seed(1))
theirs = PearsonCorrelation()
for batch in zip(x.split(100), y.split(100), strict=True):
    theirs.update(batch)
print(f"Ignite, r        ~ {theirs.compute():.2f}")
print(f"NumPy, r           {numpy.corrcoef(x.double(), y.double())[0, 1]:.2f}")
print(f"assay, r           {PearsonCorrCoef()(x, y):.2f}")
