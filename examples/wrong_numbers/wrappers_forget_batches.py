import torch
from torchmetrics import MeanMetric
from torchmetrics.wrappers import BootStrapper, MinMaxMetric

from assay.compat import torchmetrics

batches = [torch.full((50,), value) for value in (1.0, 5.0, 9.0)]
there, here = MinMaxMetric(MeanMetric()), torchmetrics.wrappers.MinMaxMetric(torchmetrics.MeanMetric())
resampled = BootStrapper(MeanMetric())
for batch in batches:
    there(batch), here(batch), resampled(batch)
print(f"TorchMetrics, MinMaxMetric {there.compute()['raw']:.4f}")
print(f"TorchMetrics, BootStrapper {resampled.compute()['mean']:.4f}")
print(f"by hand                    {torch.cat(batches).mean():.4f}")
print(f"assay, MinMaxMetric        {here.compute()['raw']:.4f}")
