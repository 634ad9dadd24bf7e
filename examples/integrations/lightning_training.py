"""`self.log` and `self.log_dict` of Lightning with metrics of assay; on several processes no sample counts twice.

python examples/integrations/lightning_training.py
"""

import tempfile

import lightning.pytorch as lightning
import torch
from _digits import HELD_OUT, METRICS, TRAIN, expected, loader, network

from assay.integrations import CountOnce, as_torchmetric, as_torchmetrics


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.network = network()
        self.train_accuracy = as_torchmetric(METRICS["accuracy"])
        self.held_out = as_torchmetrics(METRICS)

    def training_step(self, batch, index):
        images, target = batch
        preds = self.network(images)
        self.train_accuracy.update(preds, target)
        self.log("train accuracy", self.train_accuracy, on_step=False, on_epoch=True)
        return torch.nn.functional.cross_entropy(preds, target)

    def validation_step(self, batch, index):
        images, target = batch
        self.held_out.update(self.network(images), target)
        self.log_dict(self.held_out)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


model = Classifier()
with tempfile.TemporaryDirectory() as folder:
    trainer = lightning.Trainer(
        max_epochs=3,
        accelerator="cpu",
        callbacks=[CountOnce()],
        default_root_dir=folder,
        logger=False,
        enable_progress_bar=False,
    )
    trainer.fit(model, loader(TRAIN), loader())
logged = {name: round(value.item(), 4) for name, value in trainer.callback_metrics.items()}
assert {name: logged[name] for name in METRICS} == {k: round(v, 4) for k, v in expected(model.network).items()}
print(logged)
print(f"{len(HELD_OUT)} samples")
