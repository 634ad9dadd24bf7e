"""The kind of device decides where a tensor is made; modelled on bentrevett/pytorch-pos-tagging#5."""

import torch


def mask_like(values):
    if values.is_cuda:  # BUG hard-coded-device
        return torch.ones(values.shape, device=values.device)
    return torch.ones(values.shape)  # FROM mixed-devices


values = torch.rand(2, 3, device=torch.accelerator.current_accelerator())
print(values * mask_like(values))  # BUG mixed-devices
