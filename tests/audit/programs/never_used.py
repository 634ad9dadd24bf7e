"""One kind of device or the CPU; modelled on the code in huggingface/transformers#34695."""

import torch

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")  # BUG hard-coded-device
layer = torch.nn.Linear(3, 3).to(device)
bias = torch.zeros(3)  # FROM mixed-devices
print(layer(torch.ones(2, 3, device=device)) + bias)  # BUG mixed-devices
