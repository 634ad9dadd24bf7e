"""Run by `test_composer.py` with an old release of Composer in front: its Trainer on the CPU and on pretend `mps`."""

# ruff: noqa: E402 - the release must be made importable first

import json
import warnings

import composer_evaluation

composer_evaluation.prepare()
warnings.simplefilter("ignore")

import torch
from torch.utils.data import DataLoader, TensorDataset

import composer
from assay import Accuracy, F1Score
from assay.devices.pretend import pretend
from assay.integrations import as_composer, as_evaluator

torch.manual_seed(0)
X, Y = torch.rand(37, 4), torch.arange(37) % 3
LAYER = torch.nn.Linear(4, 3)
METRICS = {"acc": Accuracy(num_classes=3), "f1 of acc": F1Score(num_classes=3, average="macro")}


class Nested(torch.nn.Module):
    """Its outputs lie deeper than Composer moves them."""

    def __init__(self):
        super().__init__()
        self.layer = LAYER

    def forward(self, x):
        return {"head": {"logits": self.layer(x)}}


def evaluated(model, device):
    """What `Trainer.eval` finds with one of the two metrics."""
    data = as_evaluator("held out", DataLoader(TensorDataset(X, Y), batch_size=8), ["acc"])
    trainer = composer.Trainer(model=model, eval_dataloader=data, device=device, progress_bar=False, loggers=[])
    trainer.eval()
    return {name: value.item() for name, value in trainer.state.eval_metric_values.items()}


def trained():
    """What a training epoch leaves in the Trainer's state."""
    torch.manual_seed(1)
    model = as_composer(torch.nn.Linear(4, 3), METRICS, torch.nn.functional.cross_entropy, train_metrics=METRICS)
    data = DataLoader(TensorDataset(X, Y), batch_size=37)
    options = {"optimizers": torch.optim.SGD(model.parameters(), lr=0.0), "progress_bar": False, "loggers": []}
    trainer = composer.Trainer(model=model, train_dataloader=data, max_duration="1ep", device="cpu", **options)
    trainer.fit()
    value = trainer.state.train_metric_values["acc"].item()
    return value == METRICS["acc"](model.module(X).detach(), Y).item()


def nested():
    """A model whose outputs Composer does not find."""
    return as_composer(Nested(), METRICS, preds=lambda outputs: outputs["head"]["logits"])


found = {"release": composer.__version__, "training": trained()}
found["expected"] = {"acc": METRICS["acc"](LAYER(X).detach(), Y).item()}
found["cpu"] = evaluated(as_composer(LAYER, METRICS), "cpu")
with pretend("mps"):
    found["mps"] = evaluated(as_composer(LAYER, METRICS), "mps")
if composer.__version__ != "0.21.1":  # which takes a mapping of tensors only
    with pretend("mps"):
        found["nested"] = evaluated(nested(), "mps")
print(json.dumps(found))
