import torch
from torchmetrics import image

from assay import metrics as ours

target = torch.full((1, 3, 16, 16), 2.0)
print(f"TorchMetrics, RASE {image.RelativeAverageSpectralError()(target + 0.1, target):.2f}")
print(f"in percent         {100 * 0.1 / 2:.2f}")
print(f"assay, RASE        {ours.RelativeAverageSpectralError()(target + 0.1, target):.2f}")

preds, target = torch.zeros(1, 1, 16, 16), torch.zeros(1, 1, 16, 16)
preds[..., -1, :] = 1
windows = torch.nn.functional.unfold(preds.double(), 8).square().mean(1).sqrt()
print(f"TorchMetrics, RMSE {image.RootMeanSquaredErrorUsingSlidingWindow()(preds, target):.4f}")
print(f"all windows        {windows.mean():.4f}")
print(f"assay, RMSE        {ours.RootMeanSquaredErrorUsingSlidingWindow()(preds, target):.4f}")

black = torch.ones(1, 3, 4, 4)
black[..., 0, 0] = 0
print(f"TorchMetrics, SAM  {image.SpectralAngleMapper()(black, black):.4f}")
print(f"assay, SAM         {ours.SpectralAngleMapper()(black, black):.4f}")
