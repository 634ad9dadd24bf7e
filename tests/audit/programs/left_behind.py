"""A helper gives its result on the CPU; modelled on jmclong/random-fourier-features-pytorch#4."""

import torch


def frequencies(count):
    steps = torch.arange(count)  # FROM mixed-devices
    return 2.0**steps


def encode(values):
    table = frequencies(4)
    return torch.cat([values[:, None] * 1.0, values[:, None]], 1) @ table.reshape(2, 2)  # BUG mixed-devices


print(encode(torch.ones(3, device=torch.accelerator.current_accelerator())))
