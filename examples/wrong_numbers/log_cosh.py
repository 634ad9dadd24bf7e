import math

import torch
from torchmetrics.regression import LogCoshError

from assay.metrics import LogCoshError as Ours

zero = torch.zeros(1)
for error in (100.0, 1e-4):
    x = zero + error
    print(f"TorchMetrics {LogCoshError()(x, zero):.4g}")
    print(f"float64      {error + math.log1p(math.expm1(-2 * error) / 2):.4g}")
    print(f"assay        {Ours()(x, zero):.4g}")
