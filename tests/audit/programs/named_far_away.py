"""The name of the device stands in an option's default; modelled on yizhiwang96/deepvecfont-v2#9."""

import argparse

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cuda")  # FROM hard-coded-device
options = parser.parse_args([])
model = torch.nn.Linear(4, 2).to(options.device)  # BUG hard-coded-device
for _ in range(2):
    print(model(torch.ones(1, 4, device=options.device)).shape)
