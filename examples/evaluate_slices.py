"""A model is measured on slices of its data: the worst one is named, and a gate holds all of them to a bound.

python examples/evaluate_slices.py
"""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset

from assay import Accuracy, F1Score, evaluate
from assay.report import gate

torch.manual_seed(0)
digits = load_digits()
images, target = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(60):
    optimizer.zero_grad()
    torch.autograd.backward(nn.functional.cross_entropy(model(images[:1200]), target[:1200]))
    optimizer.step()


class HeldOut(Dataset):
    """Images that were not trained on, with their names."""

    def __len__(self):
        return len(target) - 1200

    def __getitem__(self, k):
        return {"pixels": images[1200 + k], "label": target[1200 + k], "name": f"scan {1200 + k}"}


def ink(batch):
    """How much ink there is: a number that is binned, so that slices have samples enough."""
    share = batch["pixels"].mean(1)
    return ["little" if each < 0.28 else "much" if each > 0.34 else "usual" for each in share.tolist()]


report = evaluate(
    model,
    DataLoader(HeldOut(), batch_size=64),
    {"accuracy": Accuracy(num_classes=10), "Macro F1": F1Score(num_classes=10, average="macro")},
    inputs="pixels",
    ids="name",
    slices={"ink": ink, "digit": "label", "ink x digit": ("ink", "digit")},
    title="Digits, held out",
)
report.show()

(section,) = report.sections
for value in section.values:
    print(f"{value.name}: {value.value:.4f} [{value.lower:.4f}, {value.upper:.4f}] by {value.note}")
for bound in (0.2, 0.9):
    judged = gate(report, {"worst-slice": {"accuracy": bound}})
    print(f"accuracy of {bound} in every slice: {judged.outcome} ({judged.checks[0].where})")
assert section.samples.ids.values[0] == "scan 1200"
