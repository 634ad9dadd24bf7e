"""A Trainer of Transformers that measures batch by batch on the device, so that no predictions are kept.

python examples/integrations/transformers_trainer.py
"""

import tempfile

import torch
from _digits import HELD_OUT, METRICS, expected, trained
from transformers import Trainer, TrainingArguments

from assay.integrations import compute_metrics


class Classifier(torch.nn.Module):
    """As a Trainer wants a model: named inputs, loss and logits."""

    def __init__(self) -> None:
        super().__init__()
        self.network = trained()

    def forward(self, images, labels):
        logits = self.network(images)
        return {"loss": torch.nn.functional.cross_entropy(logits, labels), "logits": logits}


data = [{"images": image, "labels": label} for image, label in HELD_OUT]
model = Classifier()
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        output_dir=folder, batch_eval_metrics=True, use_cpu=True, report_to=[], disable_tqdm=True, eval_strategy="no"
    )
    trainer = Trainer(model=model, args=arguments, eval_dataset=data, compute_metrics=compute_metrics(METRICS))
    found = trainer.evaluate()
assert {name: found[f"eval_{name}"] for name in METRICS} == expected(model.network)
print({name: found[f"eval_{name}"] for name in METRICS})
print(f"{len(data)} samples")
