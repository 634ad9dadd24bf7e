"""What the process has imported from which those of a group are forked: what they need, and takes seconds.

Forked processes share what lies in memory until somebody writes there, as the garbage collector does, which has nothing
to look for here.
"""

from __future__ import annotations

import gc
from importlib import import_module

for name in (
    "assay.evaluation.evaluate_model",
    "hypothesis",  # and others that modules of tests import
    "ignite.metrics",
    "nltk",
    "torch._dynamo",  # of DistributedDataParallel
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
    "torch.distributed.tensor.parallel",
    "torchmetrics",
):
    import_module(name)
gc.collect()
gc.freeze()
