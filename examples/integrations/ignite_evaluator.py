"""An evaluator of Ignite, whose `state.metrics` get assay's values.

python examples/integrations/ignite_evaluator.py
"""

from _digits import HELD_OUT, METRICS, expected, loader, trained
from ignite.engine import create_supervised_evaluator

from assay import Meter
from assay.integrations import as_ignite, attach

model = trained()
evaluator = create_supervised_evaluator(model)
attach(evaluator, Meter(**METRICS))
error = 1 - as_ignite(METRICS["accuracy"])  # Ignite's own arithmetic on metrics
error.attach(evaluator, "error")

found = evaluator.run(loader()).metrics
assert {name: found[name] for name in METRICS} == expected(model)
print(found)
print(f"{len(HELD_OUT)} samples")
