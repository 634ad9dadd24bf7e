"""`fit` and `evaluate` of Keras 3 on torch with a metric of assay.

python examples/integrations/keras_on_torch.py
"""

import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import torch
from _digits import HELD_OUT, METRICS, TRAIN

from assay.integrations import as_keras

keras.utils.set_random_seed(0)
model = keras.Sequential([keras.layers.Input((64,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(10)])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(loss=loss, optimizer="adam", metrics=[as_keras(metric, name) for name, metric in METRICS.items()])
images, target = (part.numpy() for part in HELD_OUT.tensors)
model.fit(*(part.numpy() for part in TRAIN.tensors), epochs=5, verbose=0)
found = model.evaluate(images, target, verbose=0, return_dict=True)

preds = torch.as_tensor(model.predict(images, verbose=0))
for name, metric in METRICS.items():
    assert abs(found[name] - metric(preds, torch.as_tensor(target)).item()) < 1e-6
print(found)
print(f"{len(target)} samples")
