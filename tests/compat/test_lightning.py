"""A module of Lightning logs the same values with an import of `assay.compat.torchmetrics` and with TorchMetrics."""

from __future__ import annotations

import warnings

import pytest
import torch
import torchmetrics as original
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as lightning

from assay.compat import torchmetrics

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers, loggers and ports
GENERATOR = torch.Generator().manual_seed(2)
DATA = TensorDataset(torch.randn(37, 4, generator=GENERATOR), torch.randint(3, (37,), generator=GENERATOR))


class Classifier(lightning.LightningModule):
    """Collections with prefixes, logged metrics and values, wrappers, and a mean of losses."""

    def __init__(self, kinds):
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(4, 3)
        task = {"task": "multiclass", "num_classes": 3}
        metrics = [kinds.Accuracy(**task), kinds.F1Score(**task, average="macro"), kinds.AUROC(**task)]
        shared = kinds.MetricCollection(metrics)
        self.train_metrics, self.val_metrics = shared.clone(prefix="train_"), shared.clone(prefix="val_")
        self.train_metrics.persistent(True)
        self.loss, self.last = kinds.MeanMetric(), kinds.wrappers.Running(kinds.MeanMetric(), 3)
        self.best = kinds.MaxMetric()
        self.classwise = kinds.ClasswiseWrapper(kinds.Recall(**task, average=None), labels=["a", "b", "c"])

    def training_step(self, batch, batch_idx):
        scores = self.layer(batch[0])
        loss = nn.functional.cross_entropy(scores, batch[1])
        self.loss(loss.detach())
        self.last(loss.detach())
        self.log("loss", self.loss, on_step=True, on_epoch=True)
        self.log("last", self.last, on_step=True, on_epoch=False)
        self.log_dict(self.train_metrics(scores, batch[1]), on_step=True, on_epoch=False)
        return loss

    def on_train_epoch_end(self):
        self.train_metrics.reset()

    def validation_step(self, batch, batch_idx):
        scores = self.layer(batch[0])
        self.val_metrics.update(scores, batch[1])
        self.classwise.update(scores, batch[1])
        self.log_dict(self.val_metrics, on_epoch=True)

    def on_validation_epoch_end(self):
        self.best(self.val_metrics.compute()["val_MulticlassAccuracy"])
        self.log("best", self.best.compute())
        self.log_dict(self.classwise.compute())
        self.classwise.reset()

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def logged(kinds, folder):
    trainer = lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        enable_checkpointing=False,
        default_root_dir=folder,
        max_epochs=2,
    )
    module = Classifier(kinds)
    trainer.fit(module, DataLoader(DATA, batch_size=9), DataLoader(DATA, batch_size=16))
    path = folder / f"{kinds.__name__}.ckpt"
    trainer.save_checkpoint(path)
    Classifier(kinds).load_state_dict(torch.load(path, weights_only=True)["state_dict"])
    return trainer.callback_metrics


def test_logged_values_are_those_of_torchmetrics(tmp_path):
    found, expected = (logged(kinds, tmp_path) for kinds in (torchmetrics, original))
    assert len(expected) == 13
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
