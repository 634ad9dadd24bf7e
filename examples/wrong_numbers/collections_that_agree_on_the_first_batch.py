import torch
from torchmetrics import MetricCollection
from torchmetrics.classification import BinaryPrecision

from assay import Meter, Precision

batches = [(torch.tensor([0.9, 0.1]), torch.tensor([1, 0])), (torch.tensor([0.9, 0.6]), torch.tensor([1, 0]))]
collection = MetricCollection({"at_50": BinaryPrecision(threshold=0.5), "at_70": BinaryPrecision(threshold=0.7)})
meter = Meter(at_50=Precision(threshold=0.5), at_70=Precision(threshold=0.7))
for preds, target in batches:
    collection.update(preds, target)
    meter.update(preds, target)
print(f"TorchMetrics {collection.compute()['at_70']:.4f}")
print(f"2 of 2       {2 / 2:.4f}")
print(f"assay        {meter.compute()['at_70']:.4f}")
