"""assay with Accelerate: no gathering, no repeated samples, the bits of one process."""

from __future__ import annotations

import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader, TensorDataset

from assay import AUROC, Accuracy, Meter
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
