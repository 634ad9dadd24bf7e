"""A tensor is on the first GPU by its name, the inputs on the second; modelled on shunsukesaito/SCANimate#8."""

import torch


def audit(device):
    inputs = torch.ones(3, device=device)
    offsets = torch.zeros(3, device="cuda:0")  # BUG hard-coded-device
    return inputs - offsets  # BUG mixed-devices
