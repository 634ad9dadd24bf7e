"""Composer's Trainer evaluates a module with metrics of assay; needs an environment with Composer and its torch.

python examples/integrations/composer_trainer.py
"""

from _digits import HELD_OUT, METRICS, expected, loader, trained
from composer import Trainer

from assay.integrations import as_composer, as_evaluator

model = as_composer(trained(), METRICS)
evaluator = as_evaluator("held out", loader(), ["accuracy", "f1"])
trainer = Trainer(model=model, eval_dataloader=evaluator, device="cpu", progress_bar=False, loggers=[])
trainer.eval()

found = {name: value.item() for name, value in trainer.state.eval_metric_values.items()}
assert found == expected(model.module)
print(found)
print(f"{len(HELD_OUT)} samples")
