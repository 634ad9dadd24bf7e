"""A checkpoint of a CUDA machine is loaded without map_location; modelled on invoke-ai/InvokeAI#3442."""

import os

import torch

device = torch.accelerator.current_accelerator()
model = torch.nn.Linear(3, 1).to(device)
state = torch.load(os.environ["CHECKPOINT"])  # BUG map-location
model.load_state_dict(state)
print(model(torch.ones(1, 3)))  # BUG mixed-devices
