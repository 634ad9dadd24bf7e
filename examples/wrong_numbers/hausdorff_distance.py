import torch
from scipy.spatial.distance import directed_hausdorff
from torchmetrics.segmentation import HausdorffDistance

from assay.metrics import HausdorffDistance as Ours

preds, target = torch.zeros(2, 5, dtype=torch.long), torch.zeros(2, 5, dtype=torch.long)
preds[0, 0] = target[0, 4] = 1
one_hot = [torch.stack([1 - mask, mask])[None] for mask in (preds, target)]
print(f"TorchMetrics {HausdorffDistance(num_classes=2, include_background=False)(*one_hot):.4f}")
print(f"SciPy        {directed_hausdorff(preds.nonzero(), target.nonzero())[0]:.4f}")
print(f"assay        {Ours(num_classes=2)([preds], [target]):.4f}")
