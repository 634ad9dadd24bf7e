"""assay in Composer: what its Trainer asks of a model, and, by `make test-integrations`, in two real releases."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from assay import Accuracy, F1Score, Meter
from assay.errors import ConfigError, MissingDependencyError
from assay.integrations import as_composer, as_evaluator, composer
from integrations import composer_stub

X = torch.rand(37, 4, generator=torch.Generator().manual_seed(0))
Y = torch.arange(37) % 3
WEIGHTS = torch.linspace(0, 2, 37)
METRICS = {"acc": Accuracy(num_classes=3), "f1 of acc": F1Score(num_classes=3, average="macro")}
RELEASES = os.environ.get("ASSAY_OLD_RELEASES", "")
REASON = "make test-integrations installs old releases of Composer"


@pytest.fixture(autouse=True)
def stubbed(monkeypatch):
    composer._model_class.cache_clear()
    composer_stub.installed(monkeypatch)
    yield
    composer._model_class.cache_clear()


def layer():
    torch.manual_seed(0)
    return torch.nn.Linear(4, 3)


def loader(*columns):
    return DataLoader(TensorDataset(*columns), batch_size=8)


def expected(metric, **weights):
    return metric(layer()(X).detach(), Y, **weights).float().item()


def test_metrics_of_a_model():
    found = composer_stub.evaluate(as_composer(layer(), METRICS), as_evaluator("held out", loader(X, Y)))
    assert {name: value.item() for name, value in found.items()} == {
        name: expected(metric) for name, metric in METRICS.items()
    }


def test_an_evaluator_has_the_metrics_that_it_names_and_no_others():
    model = as_composer(layer(), Meter(**METRICS))
    found = composer_stub.evaluate(model, as_evaluator("held out", loader(X, Y), ["acc"]))
    assert found.keys() == {"acc"}


def test_weights_and_batches_with_names():
    def batches():
        for x, y, w in loader(X, Y, WEIGHTS):
            yield {"pixels": x, "truth": y, "importance": w}

    names = {"target": "truth", "weights": "importance"}
    model = as_composer(layer(), {"acc": METRICS["acc"]}, inputs=lambda batch: batch["pixels"], **names)
    with pytest.raises(ConfigError, match=r"target: got no 'truth' in .*expected a part that is there"):
        composer_stub.evaluate(model, as_evaluator("held out", loader(X, Y)))
    found = composer_stub.evaluate(model, as_evaluator("held out", batches()))
    assert found["acc"].item() == expected(METRICS["acc"], weights=WEIGHTS)


class Nested(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = layer()

    def forward(self, x):
        return {"head": {"logits": self.layer(x)}}


@pytest.mark.devices("mps")
@pytest.mark.parametrize("nested", [False, True])
def test_outputs_that_were_moved_without_the_batch_and_outputs_that_were_not(device, nested):
    options = {"preds": lambda outputs: outputs["head"]["logits"]} if nested else {}
    model = as_composer(Nested() if nested else layer(), METRICS, **options)
    found = composer_stub.evaluate(model, as_evaluator("held out", loader(X, Y)), device, moved=True)
    assert found["acc"].item() == expected(METRICS["acc"])


@pytest.mark.devices("mps")
def test_the_case_is_one_without_assay(device):
    class Plain(composer_stub.ComposerModel):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer()

        def eval_forward(self, batch, outputs=None):
            return self.layer(batch[0])

        def get_metrics(self, is_train=False):
            from torchmetrics.classification import MulticlassAccuracy

            return {"acc": MulticlassAccuracy(3)}

        def update_metric(self, batch, outputs, metric):
            metric.update(outputs, batch[1])

    evaluator = composer_stub.Evaluator(label="held out", dataloader=loader(X, Y))
    with pytest.raises(RuntimeError, match="device"):
        composer_stub.evaluate(Plain(), evaluator, device, moved=True)


def test_training():
    model = as_composer(layer(), METRICS, torch.nn.functional.cross_entropy, train_metrics={"acc": METRICS["acc"]})
    batch = [X, Y]
    outputs = model.forward(batch)
    loss = model.loss(outputs, batch)
    torch.autograd.backward(loss)
    assert loss.item() == torch.nn.functional.cross_entropy(layer()(X), Y).item()
    assert model.module.weight.grad is not None
    assert model.eval_forward(batch, outputs) is outputs
    assert model.get_metrics(is_train=True).keys() == {"acc"}


def test_metrics_are_no_parts_of_the_model():
    model = as_composer(layer(), METRICS)
    assert model.state_dict().keys() == {"module.weight", "module.bias"}


def test_copies_and_pickles_of_a_model():
    model = as_composer(layer(), METRICS)
    for again in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert again.get_metrics().keys() == METRICS.keys()
        assert torch.equal(again.module.weight, model.module.weight)


def test_bad_arguments():
    with pytest.raises(ConfigError, match="metrics: got list, expected metrics by name, or a meter"):
        as_composer(layer(), [Accuracy()])
    with pytest.raises(ConfigError, match="names: got 'acc', expected several names"):
        as_evaluator("held out", loader(X, Y), "acc")
    model = as_composer(layer(), METRICS)
    with pytest.raises(ConfigError, match="loss: got none, expected a function of predictions and target"):
        model.loss(model.forward([X, Y]), [X, Y])
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        composer.other  # noqa: B018 - the look-up is what is tested


def test_composer_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "composer", None)
    with pytest.raises(MissingDependencyError, match=r'mosaicml: got no such package.*"assay\[composer\]"'):
        as_composer(layer(), METRICS)


def printed(release, *arguments):
    """The last line that Python prints with a release of Composer in front."""
    programs = Path(__file__).parents[1] / "regressions"
    folders = [Path(RELEASES).resolve() / each for each in (release, "composer-needs")]
    assert all(folder.is_dir() for folder in folders), folders
    path = os.pathsep.join(map(str, [*folders, programs]))
    environment = os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=300, cwd=programs
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.skipif(not RELEASES, reason=REASON)
def test_the_example():
    example = Path(__file__).parents[2] / "examples" / "integrations" / "composer_trainer.py"
    code = "import sys, composer_evaluation; composer_evaluation.prepare(); sys.path.insert(0, sys.argv[1])"
    assert printed("mosaicml==0.21.2", "-c", f"{code}; import {example.stem}", str(example.parent)) == "597 samples"


@pytest.mark.slow
@pytest.mark.skipif(not RELEASES, reason=REASON)
@pytest.mark.parametrize("release", ["mosaicml==0.21.1", "mosaicml==0.21.2"])
def test_in_the_real_trainer(release):
    found = json.loads(printed(release, str(Path(__file__).with_name("composer_release.py"))))
    assert f"mosaicml=={found['release']}" == release
    assert found["training"]
    for where in {"cpu", "mps", "nested"} & found.keys():
        assert found[where] == found["expected"], where
