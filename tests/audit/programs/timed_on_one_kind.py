"""A benchmark waits for one kind of device without asking for it; modelled on karpathy/nanochat#792."""

import time

import torch

device = torch.accelerator.current_accelerator()
values = torch.ones(64, 64, device=device)
if torch.cuda.is_available():
    torch.cuda.synchronize()
begun = time.perf_counter()
product = values @ values
torch.cuda.synchronize()  # BUG hard-coded-device
print(time.perf_counter() - begun)
print(product.numpy().shape)  # BUG device-error
