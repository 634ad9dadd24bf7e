"""Outputs are moved to the CPU one by one, the targets stay; modelled on neuro-ml/thunder#49."""

import torch


class Collected:
    def __init__(self):
        self.outputs, self.targets = [], []

    def update(self, outputs, targets):
        self.outputs.append(outputs.detach().cpu())  # BUG device-sync # FROM mixed-devices
        self.targets.append(targets)

    def mean(self):
        outputs, targets = torch.cat(self.outputs), torch.cat(self.targets)
        return (outputs - targets).abs().mean()  # BUG mixed-devices


device = torch.accelerator.current_accelerator()
collected = Collected()
for _ in range(2):
    collected.update(torch.rand(3, device=device), torch.rand(3, device=device))
print(collected.mean())
