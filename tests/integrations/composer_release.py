"""Run by `test_composer.py` with an old release of Composer in front: its Trainer on the CPU and on pretend `mps`."""

from __future__ import annotations

import json
import warnings

import torch
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy, F1Score
from assay.integrations import as_composer, as_evaluator
from assay.pretend import pretend

METRICS = {"acc": Accuracy(num_classes=3), "f1 of acc": F1Score(num_classes=3, average="macro")}
X, Y = torch.rand(37, 4, generator=torch.Generator().manual_seed(0)), torch.arange(37) % 3


def layer():
    """The same module at each call."""
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


class Nested(torch.nn.Module):
    """Its outputs lie deeper than Composer moves them."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = layer()

    def forward(self, x):
        return {"head": {"logits": self.layer(x)}}


def evaluated(composer, model, device):
    """What `Trainer.eval` finds with one of the two metrics."""
    data = as_evaluator("held out", DataLoader(TensorDataset(X, Y), batch_size=8), ["acc"])
    trainer = composer.Trainer(model=model, eval_dataloader=data, device=device, progress_bar=False, loggers=[])
    trainer.eval()
    return {name: value.item() for name, value in trainer.state.eval_metric_values.items()}


def trained(composer):
    """Whether a training epoch leaves the value of its batch in the Trainer's state."""
    model = as_composer(layer(), METRICS, torch.nn.functional.cross_entropy, train_metrics=METRICS)
    data = DataLoader(TensorDataset(X, Y), batch_size=37)
    options = {"optimizers": torch.optim.SGD(model.parameters(), lr=0.0), "progress_bar": False, "loggers": []}
    trainer = composer.Trainer(model=model, train_dataloader=data, max_duration="1ep", device="cpu", **options)
    trainer.fit()
    return trainer.state.train_metric_values["acc"].item() == METRICS["acc"](layer()(X).detach(), Y).item()


def found():
    """All that the test asks about."""
    import composer

    values = {"release": composer.__version__, "training": trained(composer)}
    values["expected"] = {"acc": METRICS["acc"](layer()(X).detach(), Y).item()}
    values["cpu"] = evaluated(composer, as_composer(layer(), METRICS), "cpu")
    with pretend("mps"):
        values["mps"] = evaluated(composer, as_composer(layer(), METRICS), "mps")
    if composer.__version__ != "0.21.1":  # which takes a mapping of tensors only
        nested = as_composer(Nested(), METRICS, preds=lambda outputs: outputs["head"]["logits"])
        with pretend("mps"):
            values["nested"] = evaluated(composer, nested, "mps")
    return values


if __name__ == "__main__":
    import composer_evaluation

    composer_evaluation.prepare()
    warnings.simplefilter("ignore")
    print(json.dumps(found()))
