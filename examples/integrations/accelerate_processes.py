"""Accelerate on two processes: each counts its own samples, nothing is gathered, and the bits are those of one.

torchrun --nproc-per-node 2 examples/integrations/accelerate_processes.py
"""

import torch
from _digits import HELD_OUT, METRICS, expected, loader, trained
from accelerate import Accelerator

from assay import Meter
from assay.integrations import accelerate

accelerator, meter = Accelerator(cpu=True), Meter(**METRICS)
model = trained()
alone = expected(model)
model, batches = accelerator.prepare(model, loader())
with torch.no_grad():
    for images, target in batches:  # the last batch repeats samples, so that all processes have as many
        accelerate.update(accelerator, meter, model(images), target)

total = meter.sync()
assert total.rows == len(HELD_OUT)
assert {name: value.item() for name, value in total.compute().items()} == alone
accelerator.print(alone)
accelerator.print(f"{total.rows} samples")
accelerator.end_training()
