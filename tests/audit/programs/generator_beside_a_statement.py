"""A generator of the CPU on a line with two statements: no expression is known; modelled on pyro-ppl/pyro#3264."""

import torch

device = torch.accelerator.current_accelerator()
generator = torch.Generator(); noise = torch.empty(4, device=device).normal_(generator=generator)  # fmt: skip # noqa: E702 # BUG device-error
print(noise)
