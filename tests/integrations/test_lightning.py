"""assay's metrics in Lightning's Trainer: steps and epochs, checkpoints, and two processes."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, TensorDataset

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import lightning.pytorch as lightning
    from lightning.pytorch.strategies import ModelParallelStrategy

from assay import Accuracy, F1Score, Meter, evaluate
from assay.integrations import CountOnce, as_torchmetric, as_torchmetrics
from ranks import as_torchrun, processes

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's advice on workers, loggers and ports
CLASSES = 4
X = torch.randn(37, 6, generator=torch.Generator().manual_seed(0))
Y = torch.randint(CLASSES, (37,), generator=torch.Generator().manual_seed(1))


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(6, CLASSES)
        self.train_acc, self.acc = (as_torchmetric(Accuracy(num_classes=CLASSES)) for _ in range(2))
        self.more = as_torchmetrics(
            {"acc": Accuracy(num_classes=CLASSES), "f1": F1Score(num_classes=CLASSES, average="macro")}, prefix="more_"
        )

    def training_step(self, batch, batch_idx):
        x, y = batch
        preds = self.layer(x)
        self.train_acc(preds, y)
        self.log("train_acc", self.train_acc, on_step=True, on_epoch=True)
        return nn.functional.cross_entropy(preds, y)

    def test_step(self, batch, batch_idx):
        self.validation_step(batch, batch_idx)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        preds = self.layer(x)
        self.acc.update(preds, y)
        self.more.update(preds, y)
        self.log("acc", self.acc)
        self.log_dict(self.more)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def loader():
    return DataLoader(TensorDataset(X, Y), batch_size=8)


def trainer(folder, **options):
    return lightning.Trainer(
        accelerator="cpu",
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=folder,
        **{"max_epochs": 2, "enable_checkpointing": False, "callbacks": [CountOnce()], **options},
    )


def expected(model):
    meter = Meter(acc=Accuracy(num_classes=CLASSES), f1=F1Score(num_classes=CLASSES, average="macro"))
    with torch.inference_mode():
        meter.update(model.layer(X), Y)
    values = meter.compute()
    return {"acc": values["acc"], "more_acc": values["acc"], "more_f1": values["f1"]}


def test_training_and_validation_log_exact_values(tmp_path):
    model, made = Classifier(), trainer(tmp_path)
    made.fit(model, loader(), loader())
    logged = made.callback_metrics
    for name, value in expected(model).items():
        assert logged[name].item() == pytest.approx(value.item(), abs=1e-7)
    assert {"train_acc", "train_acc_step", "train_acc_epoch"} <= logged.keys()
    assert model.acc.meter.rows == 0  # Lightning resets at the end of an epoch


def test_a_run_goes_on_from_a_checkpoint(tmp_path):
    whole, half = Classifier(), Classifier()
    trainer(tmp_path, max_epochs=2).fit(whole, loader(), loader())
    first = trainer(tmp_path, max_epochs=1, enable_checkpointing=True)
    first.fit(half, loader(), loader())
    first.save_checkpoint(tmp_path / "half.ckpt")
    resumed = Classifier()
    second = trainer(tmp_path, max_epochs=2)
    second.fit(resumed, loader(), loader(), ckpt_path=tmp_path / "half.ckpt")
    assert torch.equal(resumed.layer.weight, whole.layer.weight)
    assert second.callback_metrics["acc"].item() == pytest.approx(expected(whole)["acc"].item(), abs=1e-7)


class Writing(Classifier):
    """Writes what the test logged, as processes that were spawned cannot give it back."""

    def on_test_end(self) -> None:
        logged = {name: value.item() for name, value in self.trainer.callback_metrics.items()}
        Path(self.trainer.default_root_dir, f"{self.global_rank}.json").write_text(json.dumps(logged))


@pytest.fixture
def shared_by_name():
    """Tensors go to spawned processes as names of files: as descriptors, one that is there twice is refused."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    yield
    torch.multiprocessing.set_sharing_strategy(before)


@pytest.mark.usefixtures("shared_by_name")
@pytest.mark.exhaustive  # two processes import Lightning
def test_two_processes_with_a_sampler_that_pads(tmp_path):
    model = Writing()
    for callbacks, values in ([CountOnce()], expected(model)), ([], expected_with_first_again(model)):
        folder = tmp_path / ("once" if callbacks else "twice")
        folder.mkdir()
        trainer(folder, strategy="ddp_spawn", devices=2, callbacks=callbacks).test(model, loader(), verbose=False)
        for rank in range(2):
            logged = json.loads((folder / f"{rank}.json").read_text())
            for name, value in values.items():
                assert logged[name] == pytest.approx(value.item(), abs=1e-7)


def expected_with_first_again(model):
    """What Lightning measures without the callback: 37 samples on two processes, the first one twice."""
    meter = Meter(acc=Accuracy(num_classes=CLASSES), f1=F1Score(num_classes=CLASSES, average="macro"))
    with torch.inference_mode():
        meter.update(model.layer(torch.cat([X, X[:1]])), torch.cat([Y, Y[:1]]))
    values = meter.compute()
    return {"acc": values["acc"], "more_acc": values["acc"], "more_f1": values["f1"]}


class Shared(lightning.LightningModule):
    """Its strategy shares the layers among processes, in one of two ways."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, CLASSES))
        self.found: list[object] = []

    def configure_model(self) -> None:
        columns = self.device_mesh["tensor_parallel"]
        if columns.size() > 1:
            parallelize_module(self.layers, columns, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        else:
            fully_shard(self.layers, mesh=self.device_mesh["data_parallel"])

    def forward(self, x):
        return self.layers(x)

    def test_step(self, batch, batch_idx) -> None: ...

    def on_test_end(self) -> None:
        self.found += evaluated(self)


def evaluated(model):
    report = evaluate(model, TensorDataset(X, Y), Accuracy(num_classes=CLASSES), device="cpu", batch_size=8)
    return [report.sections[0].values[0].value, report.notes[0]]


def shared(rank, size):
    as_torchrun(rank, size)
    found = []
    for sizes in ((1, 2), (2, 1)):
        model = Shared()
        strategy = ModelParallelStrategy(*sizes, process_group_backend="gloo")
        trainer(None, strategy=strategy, devices=2, use_distributed_sampler=False).test(model, loader(), verbose=False)
        found.append(model.found)
    return found


@pytest.mark.slow  # two processes import Lightning
def test_models_that_a_strategy_has_shared_among_processes_have_each_sample_once(tmp_path):
    assert processes(shared, 2, tmp_path) == [[evaluated(Shared())] * 2] * 2
