"""Arrays of NumPy are float64 by default; modelled on pytorch/ignite#3326."""

import numpy
import torch

device = torch.accelerator.current_accelerator()
means = numpy.zeros(3)
print(torch.from_numpy(means).to(device))  # BUG dtype-missing
