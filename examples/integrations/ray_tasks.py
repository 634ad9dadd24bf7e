"""A table counted by tasks of Ray, and as an aggregation of a dataset; Ray starts a cluster on this machine.

python examples/integrations/ray_tasks.py
"""

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import ray
from _digits import loader, trained

from assay.integrations import score_on_ray

model = trained()
batches = [(model(x).softmax(1).detach().numpy(), y.numpy()) for x, y in loader()]
rows = [(p.tolist(), int(label)) for scores, labels in batches for p, label in zip(scores, labels, strict=True)]
table = pa.table({"p": [p for p, _ in rows], "y": [label for _, label in rows], "id": range(len(rows))})
options = {"preds": "p", "target": "y", "ids": "id", "n_resamples": 100}

ray.init(num_cpus=2, include_dashboard=False)
with tempfile.TemporaryDirectory() as folder:
    pq.write_table(table, Path(folder) / "predictions.parquet", row_group_size=100)
    by_tasks = score_on_ray(Path(folder) / "predictions.parquet", "accuracy", **options)
by_dataset = score_on_ray(ray.data.from_arrow(table), "accuracy", **options)
assert by_tasks.sections[0].values == by_dataset.sections[0].values
by_tasks.show()
print(f"{by_tasks.sections[0].values[0].count} samples")
