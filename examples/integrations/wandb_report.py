"""A report in an offline run of Weights & Biases: values with their intervals, tables, the page.

python examples/integrations/wandb_report.py
"""

import tempfile
from pathlib import Path

import wandb
from _digits import METRICS, loader, trained

from assay import evaluate
from assay.integrations import log_to_wandb

report = evaluate(trained(), loader(), METRICS, progress=False)
with tempfile.TemporaryDirectory() as folder:
    run = wandb.init(mode="offline", dir=folder, project="digits", settings=wandb.Settings(silent=True))
    log_to_wandb(report, run)
    run.finish()
    print(sorted(path.name for path in Path(folder).rglob("media/**/*") if path.is_file()))
print(f"{report.sections[0].values[0].count} samples")
