"""A generator of the CPU fills a tensor of the device; modelled on pyro-ppl/pyro#3264 and pytorch/pytorch#62152."""

import torch

device = torch.accelerator.current_accelerator()
generator = torch.Generator().manual_seed(0)
noise = torch.randn(4, generator=generator, device=device)  # BUG device-error
print(noise)
