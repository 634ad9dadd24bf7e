"""The default device is set, and a loader shuffles on the CPU; modelled on amdegroot/ssd.pytorch#578."""

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.set_default_device(torch.accelerator.current_accelerator())
data = TensorDataset(torch.rand(8, 3), torch.rand(8))
for rows, _ in DataLoader(data, batch_size=4, shuffle=True):  # BUG device-error
    print(rows.shape)
