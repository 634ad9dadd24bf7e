"""A model and its inputs are moved by `.cuda()`; modelled on maszhongming/UniEval#4."""

import torch

model = torch.nn.Linear(4, 2).cuda()  # BUG hard-coded-device
inputs = torch.ones(3, 4).to("cuda:0")  # BUG hard-coded-device
scores = model(inputs)
weights = torch.arange(2.0).repeat(3, 1)  # FROM mixed-devices
print((scores * weights).shape)  # BUG mixed-devices
