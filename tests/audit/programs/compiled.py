"""A compiled function makes a tensor on the CPU: the compiler refuses it; modelled on pytorch/pytorch#96976."""

import torch


@torch.compile
def shifted(values):
    return values * 2 + torch.ones(2)  # BUG mixed-devices


print(shifted(torch.ones(2, device=torch.accelerator.current_accelerator())))
