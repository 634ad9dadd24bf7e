"""A model is trained and measured; memory runs out, the process is stopped, and the numbers are the same.

python examples/evaluate_digits.py
"""

import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay import AUROC, Accuracy, F1Score, evaluate

torch.manual_seed(0)
digits = load_digits()
images, target = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
train, held_out = slice(0, 1200), slice(1200, None)

model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for _ in range(60):
    optimizer.zero_grad()
    torch.autograd.backward(nn.functional.cross_entropy(model(images[train]), target[train]))
    optimizer.step()

loader = DataLoader(TensorDataset(images[held_out], target[held_out]), batch_size=64, shuffle=True)
metrics = {
    "accuracy": Accuracy(num_classes=10),
    "Macro F1": F1Score(num_classes=10, average="macro"),
    "AUROC": AUROC(num_classes=10, logits=True),
}
report = evaluate(model, loader, metrics, title="Digits, held out")
report.show()


def tight(module, inputs):
    """A machine with room for 20 samples, which somebody stops after some batches."""
    if len(inputs[0]) > 20:
        raise torch.OutOfMemoryError("no room for so many")
    tight.batches += 1
    if tight.batches == 5:
        raise KeyboardInterrupt


tight.batches = 0
model.register_forward_pre_hook(tight)
with tempfile.TemporaryDirectory() as folder:
    try:
        evaluate(model, loader, metrics, resume=folder, checkpoint_every=0)
    except KeyboardInterrupt:
        print("stopped, and gone on with:")
    again = evaluate(model, loader, metrics, resume=folder, checkpoint_every=0)

assert [value.value for value in again.sections[0].values] == [value.value for value in report.sections[0].values]
print("the same values;", again.notes[0])
print(f"{again.sections[0].values[0].count} samples")
