import torch
from torcheval.metrics import BinaryAccuracy
from torchmetrics import SumMetric

from assay import Accuracy, Meter

total = SumMetric()
total.update(torch.tensor(2.0**24))
theirs, ours = BinaryAccuracy(), Meter(accuracy=Accuracy())
right, wrong = torch.ones(2**22, dtype=torch.long), torch.zeros(1, dtype=torch.long)
for _ in range(4):
    theirs.update(right, right)
    ours.update(right, right)
for _ in range(1000):
    total.update(torch.tensor(1.0))
    theirs.update(wrong, right[:1])
    ours.update(wrong, right[:1])
print(f"TorchMetrics, sum   {total.compute():.0f}")
print(f"by hand             {2**24 + 1000}")
print(f"TorchEval, accuracy {theirs.compute():.6f}")
print(f"by hand             {2**24 / (2**24 + 1000):.6f}")
print(f"assay               {ours.compute()['accuracy']:.6f}")
