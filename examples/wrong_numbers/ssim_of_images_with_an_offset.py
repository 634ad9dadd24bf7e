import torch
from ignite.metrics import SSIM
from skimage.metrics import structural_similarity
from torchmetrics.image import StructuralSimilarityIndexMeasure

from assay.metrics import StructuralSimilarityIndexMeasure as Ours

generator = torch.Generator().manual_seed(0)
target = torch.rand(1, 1, 48, 48, generator=generator)
preds = (target + 0.2 * torch.randn(1, 1, 48, 48, generator=generator)).clamp(0, 1)
x, y = preds + 1000, target + 1000
ignite = SSIM(data_range=1.0)
ignite.update((x, y))
options = {"data_range": 1, "gaussian_weights": True, "sigma": 1.5, "use_sample_covariance": False}
right = structural_similarity(x[0, 0].double().numpy(), y[0, 0].double().numpy(), **options)
print(f"TorchMetrics ~ {StructuralSimilarityIndexMeasure(data_range=1.0)(x, y):.2f}")
print(f"Ignite       ~ {ignite.compute():.2f}")
print(f"scikit-image   {right:.2f}")
print(f"assay          {Ours(data_range=1.0)(x, y):.2f}")
