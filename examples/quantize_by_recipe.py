"""A recipe with two schemes: planned for a machine that is not here, then applied and measured before and after.

python examples/quantize_by_recipe.py
"""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy, evaluate
from assay.quantize import plan

torch.manual_seed(0)
digits = load_digits()
images, target = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
train, held_out = slice(0, 1200), slice(1200, None)

model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for _ in range(80):
    optimizer.zero_grad()
    torch.autograd.backward(nn.functional.cross_entropy(model(images[train]), target[train]))
    optimizer.step()

# The first layer has rows of 64 weights, too short for groups of 128: it gets the second scheme of its rule.
recipe = {"4": "int8", "*": "int4, int4:g32"}
plan(model, recipe, device="mps", dtype=torch.bfloat16).show()  # what it would be on an Apple GPU
print()
made = plan(model, recipe, device="cpu")
small = made.apply(copy.deepcopy(model))
print(f"Here: {made.bytes_before:,} bytes become {made.bytes_after:,}.\n")

loader = DataLoader(TensorDataset(images[held_out], target[held_out]), batch_size=64)
before, after = (
    evaluate(each, loader, {"accuracy": Accuracy(num_classes=10)}, device="cpu", progress=False).sections[0].values[0]
    for each in (model, small)
)
print(f"Accuracy on {before.count} samples: {before.value:.4f} before, {after.value:.4f} after.")
assert after.value > before.value - 0.02
