"""Training loops of other libraries on pretend devices: small real runs."""

from __future__ import annotations

from operator import attrgetter

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from assay.pretend import pretend

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("accelerator", ["auto", "mps"])
def test_lightning_sees_mps(accelerator: str, engine: str, tmp_path):
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer, self.places = nn.Linear(3, 2), set()

        def training_step(self, batch, index):
            self.places.add(str(batch[0].device))
            return self.layer(batch[0]).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.1)

    with pretend("mps", engine=engine):
        model = Model()
        before = model.layer.weight.detach().clone()
        trainer = lightning.Trainer(
            accelerator=accelerator, devices=1, max_epochs=1, logger=False, enable_checkpointing=False,
            enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
        )  # fmt: skip
        trainer.fit(model, DataLoader(TensorDataset(torch.ones(4, 3)), batch_size=2))
        assert model.places == {"mps:0"}
        assert not torch.equal(model.layer.weight.cpu(), before)


@pytest.mark.exhaustive
def test_transformers_train_on_two_devices(engine: str, tmp_path):
    transformers = pytest.importorskip("transformers")
    shape = {"vocab_size": 20, "hidden_size": 8, "intermediate_size": 8}
    rows = [{"input_ids": torch.arange(5), "labels": torch.tensor(i % 2)} for i in range(8)]
    with pretend("cuda:1", engine=engine):
        config = transformers.BertConfig(num_hidden_layers=1, num_attention_heads=2, **shape)
        arguments = transformers.TrainingArguments(
            output_dir=str(tmp_path), max_steps=2, per_device_train_batch_size=2, report_to=[], disable_tqdm=True,
            save_strategy="no",
        )  # fmt: skip
        trainer = transformers.Trainer(
            transformers.BertForSequenceClassification(config), arguments, train_dataset=rows, eval_dataset=rows
        )
        trainer.train()
        assert (arguments.n_gpu, str(trainer.model.device)) == (2, "cuda:0")
        assert type(trainer.model_wrapped) is nn.DataParallel
        assert trainer.state.global_step == 2
        assert trainer.evaluate()["eval_loss"] > 0


@pytest.mark.parametrize(
    ("module", "question"),
    [
        ("lightning.pytorch.accelerators", "MPSAccelerator.is_available"),
        ("transformers.utils", "is_torch_mps_available"),
    ],
)
def test_other_libraries_see_a_device_while_it_is_pretended_and_not_after(module: str, question: str, engine: str):
    available = attrgetter(question)(pytest.importorskip(module))
    before = available()
    with pretend("mps", engine=engine):
        during = available()
    assert (before, during, available()) == (False, True, False)
