"""Two models on the same samples: a comparison

A linear classifier of digits and the same on random features, each measured on the same 897 digits.

- The verdict comes from pairs: both models are right on most digits, so only those on which they differ count.
- ROC and reliability curves of both lie in one plot, and the confusion matrix shows what changed.
- Below: which digits got better and worse, with their pictures.
"""

import torch
from sklearn.datasets import load_digits

from assay import evaluate
from assay.report import compare

torch.manual_seed(0)
digits = load_digits()
images, labels = torch.tensor(digits.images[:, None] / 16).float(), torch.tensor(digits.target)
held_out = torch.utils.data.TensorDataset(images[900:], labels[900:])


def fit(features):
    """The ridge regression of one-hot labels on features, with a temperature that makes it confident."""
    known, one_hot = features(images[:900]), torch.nn.functional.one_hot(labels[:900]).float()
    weights = torch.linalg.solve(known.T @ known + torch.eye(known.shape[1]), known.T @ one_hot)
    return lambda images: (8 * features(images) @ weights).softmax(1)


def measure(model, title):
    metrics = "accuracy,f1:average=macro,auroc,logloss,ece"
    return evaluate(model, held_out, metrics, num_classes=10, device="cpu", progress=False, title=title)


random = torch.randn(64, 400) / 4
linear = measure(fit(lambda images: images.flatten(1)), "linear")
wide = measure(fit(lambda images: (images.flatten(1) @ random).relu()), "random features")
report = compare(linear, wide)
