"""assay in Keras 3 on torch: `fit`, `evaluate`, weights."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
import torch

os.environ.setdefault("KERAS_BACKEND", "torch")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import keras

from assay import Accuracy
from assay.errors import ConfigError
from assay.integrations import as_keras
from assay.metrics import MeanAbsoluteError

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
X = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
CLASSES = np.random.default_rng(1).integers(0, 3, 50)


def classifier(metric, **options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(3)])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, optimizer="sgd", **(options or {"metrics": [metric, "accuracy"]}))
    return model


def test_evaluate_gives_assays_value_beside_keras():
    model = classifier(as_keras(Accuracy(num_classes=3), "ours"))
    found = model.evaluate(X, CLASSES, batch_size=8, verbose=0, return_dict=True)
    preds = torch.as_tensor(model.predict(X, verbose=0))
    assert found["ours"] == pytest.approx(Accuracy(num_classes=3)(preds, torch.as_tensor(CLASSES)).item(), abs=1e-7)
    assert found["ours"] == pytest.approx(found["accuracy"], abs=1e-6)


def test_fit_starts_each_epoch_anew():
    model = classifier(as_keras(Accuracy(num_classes=3), "ours"))
    history = model.fit(X, CLASSES, epochs=3, verbose=0, validation_data=(X, CLASSES)).history
    assert history["ours"] == pytest.approx(history["accuracy"], abs=1e-6)
    assert history["val_ours"] == pytest.approx(history["val_accuracy"], abs=1e-6)


def test_sample_weights():
    weights = np.random.default_rng(2).random(50).astype(np.float32)
    model = classifier(None, weighted_metrics=[as_keras(Accuracy(num_classes=3), "ours", weighted=True)])
    found = model.evaluate(X, CLASSES, sample_weight=weights, verbose=0, return_dict=True)
    preds = torch.as_tensor(model.predict(X, verbose=0))
    expected = Accuracy(num_classes=3)(preds, torch.as_tensor(CLASSES), weights=torch.as_tensor(weights))
    assert found["ours"] == pytest.approx(expected.item(), abs=1e-7)


def test_regression():
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Input((6,)), keras.layers.Dense(1)])
    model.compile(loss="mse", metrics=[as_keras(MeanAbsoluteError(), "ours"), "mae"])
    found = model.evaluate(X, X[:, :1], verbose=0, return_dict=True)
    assert found["ours"] == pytest.approx(found["mae"], rel=1e-5)


def test_its_name_is_that_of_its_class():
    assert as_keras(Accuracy()).name == "accuracy"


def test_bad_arguments(monkeypatch):
    with pytest.raises(ConfigError, match="metric: got str, expected a metric of assay"):
        as_keras("accuracy")
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ConfigError, match="keras: got the backend jax, expected torch"):
        as_keras(Accuracy())


def test_positions_that_keras_masks_do_not_count():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Embedding(6, 4, mask_zero=True), keras.layers.LSTM(1, "sigmoid", return_sequences=True)]
    model = keras.Sequential(layers)
    model.compile(loss="binary_crossentropy", metrics=[as_keras(Accuracy(), "ours"), "binary_accuracy"])
    made = np.random.default_rng(0)
    x, y = made.integers(0, 6, (20, 7)), made.integers(0, 2, (20, 7, 1))
    x[:, 4:] *= made.integers(0, 2, (20, 3))
    found = model.evaluate(x, y, batch_size=8, verbose=0, return_dict=True)
    assert found["ours"] == pytest.approx(found["binary_accuracy"], abs=1e-6)


@pytest.mark.parametrize("shape", [(20,), (20, 7)])
def test_weights_of_positions_that_keras_masks(shape):
    made = torch.Generator().manual_seed(0)
    preds, target = torch.rand(20, 7, generator=made), torch.randint(2, (20, 7), generator=made)
    mask, weights = torch.rand(20, 7, generator=made) < 0.6, torch.rand(shape, generator=made)
    keras.src.backend.set_keras_mask(preds, mask)
    metric = as_keras(Accuracy(), weighted=True)
    metric.update_state(target, preds, sample_weight=weights)
    counted = mask * weights.view(20, -1)
    expected = ((preds > 0.5) == target).mul(counted).sum() / counted.sum()
    assert metric.result() == pytest.approx(expected.item(), rel=1e-5)
