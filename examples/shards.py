"""Two shards of a data set, measured on two days, are one measurement.

Each shard is counted by a meter of its own and written to a file. The files are added up later, by whoever has them,
and give the same bits as one meter that saw everything.

    python examples/shards.py
"""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_breast_cancer

from assay import AUROC, Accuracy, F1Score, Meter


def meter() -> Meter:
    return Meter(accuracy=Accuracy(threshold=0.5), f1=F1Score(threshold=0.5), auroc=AUROC())


data = load_breast_cancer()
texture = torch.tensor(data.data[:, 1], dtype=torch.float32)
scores = 1 - (texture - texture.min()) / (texture.max() - texture.min())  # smoother cells are more often benign
target = torch.tensor(data.target)

with tempfile.TemporaryDirectory() as folder:
    files = []
    for day, rows in enumerate((slice(0, 300), slice(300, None))):
        shard = meter()
        for batch in zip(scores[rows].split(64), target[rows].split(64), strict=True):
            shard.update(*batch)
        files.append(shard.to_file(Path(folder) / f"day{day}.safetensors"))

    total = Meter.from_file(files[0]) + Meter.from_file(files[1])

whole = meter()
whole.update(scores, target)
for name, value in total.compute().items():
    print(f"{name:8} {value.item():.16f}  {value.item().hex()}")
    assert value.item().hex() == whole.compute()[name].item().hex()
print(f"{total.rows} samples; the same bits as in one go")
