"""What the examples have in common: scikit-learn's digits, and a small classifier that was trained on some of them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy, F1Score

DIGITS = load_digits()
IMAGES, TARGET = torch.tensor(DIGITS.data, dtype=torch.float32) / 16, torch.tensor(DIGITS.target)
TRAIN, HELD_OUT = TensorDataset(IMAGES[:1200], TARGET[:1200]), TensorDataset(IMAGES[1200:], TARGET[1200:])
METRICS = {"accuracy": Accuracy(num_classes=10), "f1": F1Score(num_classes=10, average="macro")}


def network() -> nn.Module:
    """A classifier that has learnt nothing."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))


def trained() -> nn.Module:
    """One that has learnt."""
    model = network()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        torch.autograd.backward(nn.functional.cross_entropy(model(IMAGES[:1200]), TARGET[:1200]))
        optimizer.step()
    return model.eval()


def loader(data: TensorDataset = HELD_OUT) -> DataLoader:
    """Batches of 64."""
    return DataLoader(data, batch_size=64)


@torch.no_grad()
def expected(model: nn.Module) -> dict[str, float]:
    """The values on what was held out, all at once."""
    images, target = HELD_OUT.tensors
    return {name: metric(model.cpu()(images), target).item() for name, metric in METRICS.items()}
