"""Positions are a plain attribute of a module; modelled on lyuwenyu/RT-DETR#677 and wingedsheep/transformer#4."""

import torch


class Positions(torch.nn.Module):
    def __init__(self, length, width):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(width))
        self.table = torch.arange(length)[:, None] / (1 + torch.arange(width))  # FROM mixed-devices

    def forward(self, embedded):
        return embedded * self.scale + self.table  # BUG mixed-devices


device = torch.accelerator.current_accelerator()
print(Positions(5, 4).to(device)(torch.ones(5, 4, device=device)).shape)
