"""Four bits a weight: what quantization cost

A small network that reads digits, with its weights as 3-bit integers, beside the same network in float32.

- KL divergence says how far the outputs moved, also where no decision changed.
- Accuracy before and after is compared in pairs; size and speed stand below.
"""

import copy

import torch
from sklearn.datasets import load_digits

from assay import Accuracy
from assay.quantize import plan
from assay.quantize.analysis import DataSpec, measure

torch.manual_seed(0)
digits = load_digits()
x, y = torch.tensor(digits.data / 16).float(), torch.tensor(digits.target)
model = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x[:900]), y[:900]).backward()
    optimizer.step()

small = plan(model, "int3:g32", device="cpu").apply(copy.deepcopy(model))
data = torch.utils.data.TensorDataset(x[900:], y[900:])
report = measure(model, small, data, Accuracy(num_classes=10), data_spec=DataSpec(device="cpu"), speed=(1, 64))
