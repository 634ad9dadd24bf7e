"""assay in a Trainer of Transformers: a real `evaluate` of a small model, at the end and batch by batch."""

from __future__ import annotations

import tempfile
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

from assay import Accuracy, ConfusionMatrix, F1Score, Meter
from assay.errors import ConfigError, ShapeError
from assay.integrations import compute_metrics
from ranks import as_torchrun, processes

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::DeprecationWarning")
CLASSES, N = 3, 21
METRICS = {"accuracy": Accuracy(num_classes=CLASSES), "f1": F1Score(num_classes=CLASSES, average="macro")}


class Sentences(torch.utils.data.Dataset):
    def __init__(self) -> None:
        made = torch.Generator().manual_seed(0)
        self.ids = torch.randint(5, 50, (N, 7), generator=made)
        self.labels = torch.randint(CLASSES, (N,), generator=made)

    def __len__(self) -> int:
        return N

    def __getitem__(self, k):
        return {"input_ids": self.ids[k], "attention_mask": torch.ones(7, dtype=torch.long), "labels": self.labels[k]}


def model():
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        num_labels=CLASSES,
        max_position_embeddings=16,
    )
    return BertForSequenceClassification(config).eval()


def evaluated(folder, by_batch):
    arguments = TrainingArguments(
        output_dir=str(folder),
        per_device_eval_batch_size=4,
        batch_eval_metrics=by_batch,
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(model=model(), args=arguments, eval_dataset=Sentences(), compute_metrics=compute_metrics(METRICS))
    found = [trainer.evaluate() for _ in range(2)]  # counts of the first must not stay for the second
    return [{name: each[f"eval_{name}"] for name in METRICS} for each in found]


def expected():
    meter, data = Meter(**METRICS), Sentences()
    with torch.inference_mode():
        meter.update(model()(input_ids=data.ids).logits, data.labels)
    return {name: value.item() for name, value in meter.compute().items()}


@pytest.mark.parametrize("by_batch", [False, True])
def test_a_trainer_evaluates(tmp_path, by_batch):
    assert evaluated(tmp_path, by_batch) == [expected()] * 2


def on_ranks(rank, size):
    as_torchrun(rank, size)
    with tempfile.TemporaryDirectory() as folder:
        return evaluated(folder, True) + evaluated(folder, False)


def test_two_processes(tmp_path):
    assert processes(on_ranks, 2, tmp_path) == [[expected()] * 4] * 2


class Given:
    def __init__(self, predictions, label_ids) -> None:
        self.predictions, self.label_ids = predictions, label_ids


def test_logits_are_the_first_of_several_outputs():
    compute = compute_metrics(METRICS)
    preds, labels = np.eye(3, dtype=np.float32), np.array([0, 1, 1])
    assert compute(Given((preds, np.zeros((3, 9))), labels)) == compute(Given(preds, labels))


def test_what_is_no_number_becomes_lists_by_name():
    compute = compute_metrics({"matrix": ConfusionMatrix(num_classes=CLASSES)})
    found = compute(Given(np.eye(3, dtype=np.float32), np.array([0, 1, 1])))
    assert found == {"matrix": [[1, 0, 0], [0, 1, 1], [0, 0, 0]]}


def test_a_failure_leaves_nothing_behind():
    compute = compute_metrics(METRICS)
    with pytest.raises(ValueError, match="preds"):
        compute(Given(np.eye(4, dtype=np.float32), np.array([[0, 1], [1, 1], [0, 0], [0, 0]])))
    assert compute.meter.rows == 0


def test_an_evaluation_that_fails_half_way_is_not_part_of_the_next_one():
    compute = compute_metrics({"accuracy": Accuracy(num_classes=3)})
    compute(SimpleNamespace(predictions=torch.eye(3), label_ids=torch.tensor([0, 0, 0])), compute_result=False)
    with pytest.raises(ShapeError):
        compute(SimpleNamespace(predictions=torch.eye(2), label_ids=torch.tensor([0, 0])), compute_result=False)
    whole = SimpleNamespace(predictions=torch.eye(3), label_ids=torch.tensor([0, 1, 2]))
    assert compute(whole, compute_result=True) == {"accuracy": 1.0}


def test_bad_arguments():
    with pytest.raises(ConfigError, match="metrics: got int, expected metrics by name, or a meter"):
        compute_metrics(3)


def test_one_metric_is_named_after_its_class():
    found = compute_metrics(Accuracy(num_classes=3))
    assert found(SimpleNamespace(predictions=torch.eye(3), label_ids=torch.tensor([0, 1, 1]))) == {"Accuracy": 2 / 3}


def test_metrics_as_text_are_of_as_many_classes_as_scores():
    compute = compute_metrics("accuracy,f1:average=macro")
    for classes in (3, 2):
        labels = np.arange(12) % classes
        values = compute((np.eye(classes, dtype=np.float32)[labels], labels))
        assert values == {"accuracy": 1.0, "f1": 1.0}
