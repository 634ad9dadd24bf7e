"""A report in an MLflow run, with a local store: metrics with their intervals, tables and the page as artifacts.

python examples/integrations/mlflow_report.py
"""

import os
import tempfile
from pathlib import Path

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # a database or a server is what MLflow advises

import mlflow
from _digits import METRICS, loader, trained

from assay import evaluate
from assay.integrations import log_to_mlflow

report = evaluate(trained(), loader(), METRICS, progress=False)
with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(Path(folder).as_uri())
    mlflow.set_experiment("digits")
    with mlflow.start_run() as run:
        log_to_mlflow(report, step=0)
    client = mlflow.MlflowClient()
    print(client.get_run(run.info.run_id).data.metrics)
    print([each.path for each in client.list_artifacts(run.info.run_id, "assay/step 0")])
print(f"{report.sections[0].values[0].count} samples")
