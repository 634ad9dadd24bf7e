"""A report in TensorBoard: values with their intervals as scalars, tables as text.

python examples/integrations/tensorboard_report.py
"""

import tempfile

from _digits import METRICS, loader, network, trained
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from torch.utils.tensorboard import SummaryWriter

from assay import evaluate
from assay.integrations import log_to_tensorboard

with tempfile.TemporaryDirectory() as folder:
    with SummaryWriter(folder) as writer:
        for epoch, model in enumerate([network(), trained()]):
            report = evaluate(model, loader(), METRICS, progress=False)
            log_to_tensorboard(report, writer, epoch, prefix="held out/")
    found = EventAccumulator(folder).Reload()
    print([f"{each.value:.3f}" for each in found.Scalars("held out/accuracy")])
    print(found.Tags()["scalars"])
print(f"{report.sections[0].values[0].count} samples")
