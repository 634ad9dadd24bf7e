"""Programs as people write them, run before and after: Lightning, Ignite, and a loop of one's own."""

from __future__ import annotations

import warnings

import pytest
import torch

from assay.migrate import rewrite

LIGHTNING = """\
import lightning as L
import torch
import torch.nn.functional as F
import torchmetrics
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score


class Classifier(L.LightningModule):
    def __init__(self, num_classes=3):
        super().__init__()
        self.net = torch.nn.Linear(4, num_classes)
        metrics = MetricCollection(
            {
                "acc": MulticlassAccuracy(num_classes=num_classes, average="micro"),
                "f1": MulticlassF1Score(num_classes=num_classes),
            }
        )
        self.val_metrics = metrics.clone(prefix="val_")
        self.top2 = torchmetrics.Accuracy(task="multiclass", num_classes=num_classes, top_k=2)
        self.auroc = torchmetrics.AUROC(task="multiclass", num_classes=num_classes)

    def validation_step(self, batch, index):
        x, y = batch
        probabilities = self.net(x).softmax(1)
        self.val_metrics(probabilities, y)
        self.top2(probabilities, y)
        self.auroc.update(probabilities, y)
        self.log_dict(self.val_metrics)
        self.log("val_top2", self.top2, on_epoch=True)
        self.log("val_auroc", self.auroc)


torch.manual_seed(0)
model = Classifier()
x, y = torch.randn(50, 4), torch.randint(0, 3, (50,))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=8)
trainer = L.Trainer(accelerator="cpu", logger=False, enable_progress_bar=False, enable_model_summary=False)
(values,) = trainer.validate(model, loader, verbose=False)
"""

IGNITE = """\
import torch
from ignite.engine import create_supervised_evaluator
from ignite.metrics import Accuracy, ConfusionMatrix, MeanSquaredError, Precision, Recall, RunningAverage

torch.manual_seed(0)
model = torch.nn.Linear(4, 3)
batches = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(5)]
precision, recall = Precision(average=False), Recall(average=False)
metrics = {
    "accuracy": Accuracy(),
    "precision": precision,
    "f1": (precision * recall * 2 / (precision + recall)).mean(),
    "matrix": ConfusionMatrix(num_classes=3),
    "first": MeanSquaredError(output_transform=lambda o: (o[0][:, 0], o[1].float())),
}
values = dict(create_supervised_evaluator(model, metrics=metrics).run(batches).metrics)
"""

LOOP = """\
import torch
from torchmetrics.classification import BinaryAUROC, BinaryF1Score
from torchmetrics.functional import mean_absolute_error
from torchmetrics.functional.classification import binary_accuracy
from torcheval.metrics import BinaryAccuracy, Mean


def evaluate(batches):
    auroc, losses = BinaryAUROC(), Mean()
    f1 = BinaryF1Score(threshold=0.4)
    accuracy = BinaryAccuracy()
    shares = []
    for scores, target in batches:
        auroc.update(scores, target)
        f1.update(scores, target)
        accuracy.update(scores, target)
        shares.append(binary_accuracy(scores, target).item())
    return {
        "auroc": auroc.compute(),
        "f1": f1.compute().item(),
        "accuracy": accuracy.compute(),
        "shares": shares,
        "error": mean_absolute_error(scores, target.float()),
    }


torch.manual_seed(0)
values = evaluate([(torch.rand(20), torch.randint(0, 2, (20,))) for _ in range(4)])
"""


def values_of(code: str) -> dict[str, torch.Tensor]:
    names: dict[str, object] = {"__name__": "program"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(code, "program", "exec"), names)
    values = names["values"]
    assert isinstance(values, dict)
    return {name: torch.as_tensor(value, dtype=torch.float64) for name, value in values.items()}


@pytest.mark.parametrize("code", [LIGHTNING, IGNITE, LOOP], ids=["lightning", "ignite", "loop"])
def test_the_values_of_a_program_stay(code):
    found = rewrite(code, {"num_classes": 3, "num_outputs": 1})
    changed = [line for line in found.after.splitlines() if line not in found.before.splitlines()]
    assert len(changed) >= 6, found.after
    before, after = values_of(code), values_of(found.after)
    assert before.keys() == after.keys()
    for name, value in before.items():
        torch.testing.assert_close(after[name], value, rtol=1e-5, atol=1e-6, equal_nan=True)
