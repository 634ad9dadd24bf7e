"""Handwritten digits: ten classes

A logistic regression reads 897 digits that it was not trained on.

- The confusion matrix shows which digits are taken for each other; click a column of the table of classes to sort it.
- Worst errors are shown as pictures, with the digit that was predicted.
- *Reliability* says whether the probabilities can be believed.
"""

import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from assay import evaluate

digits = load_digits()
classifier = LogisticRegression(max_iter=300, C=0.01).fit(digits.data[:900], digits.target[:900])
images = torch.tensor(digits.images[900:, None] / 16)


def model(images):
    return torch.tensor(classifier.predict_proba(images.flatten(1).numpy() * 16))


data = torch.utils.data.TensorDataset(images, torch.tensor(digits.target[900:]))
metrics = "accuracy,f1:average=macro,auroc,logloss,ece"
report = evaluate(model, data, metrics, num_classes=10, device="cpu", progress=False, title="Handwritten digits")
