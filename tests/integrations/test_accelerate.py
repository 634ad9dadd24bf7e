"""assay with Accelerate: no gathering, no repeated samples, the bits of one process."""

from __future__ import annotations

import pytest
import torch
from accelerate import Accelerator, cpu_offload, dispatch_model
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from assay import AUROC, Accuracy, Meter, evaluate
from assay.errors import ConfigError
from assay.integrations import accelerate
from ranks import as_torchrun, processes

N = 21


def data():
    made = torch.Generator().manual_seed(0)
    return TensorDataset(torch.rand(N, generator=made), torch.randint(2, (N,), generator=made))


def meter():
    return Meter(acc=Accuracy(), auroc=AUROC())


def measured(rank, size, batch_size=4, **options):
    as_torchrun(rank, size)
    accelerator = Accelerator(cpu=True, **options)
    ours, gathered = meter(), meter()
    for preds, target in accelerator.prepare(DataLoader(data(), batch_size=batch_size)):
        accelerate.update(accelerator, ours, preds, target)
        gathered.update(*accelerator.gather_for_metrics((preds, target)))
    values = {name: value.item() for name, value in ours.sync().compute().items()}
    return values, {name: value.item() for name, value in gathered.compute().items()}, ours.sync().rows


def expected():
    whole = meter()
    whole.update(*data().tensors)
    return {name: value.item() for name, value in whole.compute().items()}


def test_one_process(tmp_path):
    assert processes(measured, 1, tmp_path) == [[expected(), expected(), N]]


def test_three_processes_count_every_sample_once(tmp_path):
    assert processes(measured, 3, tmp_path) == [[expected(), expected(), N]] * 3


def in_large_batches(rank, size):
    return measured(rank, size, batch_size=16)


def test_more_places_than_samples(tmp_path):
    assert processes(in_large_batches, 2, tmp_path) == [[expected(), expected(), N]] * 2


class Stream(IterableDataset):
    def __iter__(self):
        return iter(pairs())


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def pairs():
    x = torch.randn(N, 4, generator=torch.Generator().manual_seed(1))
    return TensorDataset(x, (x.sum(1) > 0).long())


def evaluated(model, loader, **options):
    report = evaluate(model, loader, Accuracy(num_classes=3), device="auto", diagnostics=False, **options)
    return [report.sections[0].values[0].value, report.notes[0]]


def prepared(rank, size):
    as_torchrun(rank, size)
    accelerator = Accelerator(cpu=True)
    model, loader, shuffled = accelerator.prepare(
        network(), DataLoader(pairs(), 4), DataLoader(pairs(), 4, shuffle=True)
    )
    dispatched = dispatch_model(network(), {"": "cpu"})
    offloaded = cpu_offload(network(), torch.device("cpu"))
    try:
        evaluated(model, accelerator.prepare(DataLoader(Stream(), 4)))
        text = ""
    except ConfigError as error:
        text = str(error)
    cases = (model, loader), (model, shuffled), (dispatched, loader), (offloaded, loader), (dispatched, pairs())
    return text, [evaluated(*each) for each in cases]


def test_models_and_loaders_that_it_prepared_have_each_sample_once(tmp_path):
    whole = evaluated(network(), pairs())
    for text, found in processes(prepared, 2, tmp_path):
        assert found == [whole] * 5
        assert "got a DataLoaderDispatcher of Accelerate without indices, expected samples that are known" in text


def test_weights_without_values_are_refused():
    with torch.device("meta"):
        model = network()
    with pytest.raises(ConfigError, match=r"got weights without values \(device meta\)"):
        evaluated(model, pairs())
