"""A loader that breaks loses nothing and shifts nothing: an error, no hang, and every sample under its own id."""

from __future__ import annotations

import gc
import os
import signal
import time

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

from assay import Accuracy, evaluate
from assay.errors import ConfigError, ShapeError
from assay.evaluation import BatchError
from assay.evaluation.data.stated_length import StatedLength
from thinning import one_of_each

METRIC = Accuracy(num_classes=2)
ENDS = {
    "exit 0": lambda: os._exit(0),
    "exit 1": lambda: os._exit(1),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


class Dies(Dataset):
    """A data set whose worker ends at a sample, as long as a file is there, while another worker is slow."""

    def __init__(self, end, flag):
        self.end, self.flag = end, flag

    def __len__(self):
        return 120

    def __getitem__(self, k):
        if self.flag.exists() and get_worker_info() is not None:
            if k == 85:
                ENDS[self.end]()
            if 90 <= k < 92:
                time.sleep(0.2)
        return torch.eye(2)[k % 3 % 2], int(k % 3 == 1), k


def right(data, folder=None, **more):
    """Of every sample that was kept its id, and whether it was right."""
    loader = DataLoader(data, batch_size=10, num_workers=2)
    how = {"inputs": 0, "target": 1, "ids": 2, "device": "cpu", "resume": folder, "checkpoint_every": 0.0}
    samples = evaluate(torch.nn.Identity(), loader, METRIC, **how, **more).sections[0].samples
    return list(zip(samples.ids.values.tolist(), samples.decision.values.tolist(), strict=True))


# Multiprocessing leaves its connection to a worker open when that is killed while it sends a tensor; torch then opens
# ten temporary files to see whether more can be opened, and the signal of the death may interrupt that.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:Exception ignored in. <_io:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("on_error", ["raise", "skip"])
@pytest.mark.parametrize("end", ENDS)
@one_of_each()
def test_a_dead_worker_ends_the_run_and_the_run_resumes(tmp_path, end, on_error):
    flag = tmp_path / "flag"
    flag.touch()
    data = Dies(end, flag)
    with pytest.raises(BatchError, match=r"data loader: got .*resume="):
        right(data, tmp_path / "run", on_error=on_error)
    gc.collect()
    flag.unlink()
    assert right(data, tmp_path / "run", on_error=on_error) == [(k, int(k % 3 == 1)) for k in range(120)]


def test_a_death_that_interrupts_the_model_is_not_a_fault_of_its_batch():
    def model(x):
        raise RuntimeError("DataLoader worker (pid 1) is killed by signal: Killed. ")

    with pytest.raises(BatchError, match="data loader: got RuntimeError"):
        evaluate(model, [(torch.eye(2), torch.tensor([0, 1]))], METRIC, device="cpu", on_error="skip")


class Unreadable:
    """What cannot be made again from what a worker sent."""

    def __reduce__(self):
        return int, ("no number",)


class Sends(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, k):
        return torch.eye(2)[k % 2], k % 2, Unreadable() if k == 15 else k


def test_a_batch_that_is_lost_on_its_way_ends_the_run():
    loader = DataLoader(Sends(), batch_size=10, num_workers=1, collate_fn=together)
    with pytest.raises(BatchError, match="data loader: got ValueError: invalid literal"):
        evaluate(torch.nn.Identity(), loader, METRIC, inputs=0, target=1, device="cpu", on_error="skip")


def together(rows):
    xs, ys, others = zip(*rows, strict=True)
    return torch.stack(xs), torch.tensor(ys), list(others)


def only_even(rows):
    return together([row for row in rows if isinstance(row[2], int)])


def test_a_collate_function_that_drops_samples_shifts_nothing():
    loader = DataLoader(Sends(), batch_size=10, collate_fn=only_even)
    with pytest.raises(ShapeError, match="9 rows of predictions for 10 samples"):
        evaluate(torch.nn.Identity(), loader, METRIC, inputs=0, target=1, device="cpu", on_error="skip")


class StreamDies(IterableDataset):
    def __iter__(self):
        for k in range(40):
            if k == 25:
                os._exit(1)
            yield torch.eye(2)[k % 2], k % 2


def test_a_stream_whose_worker_dies_ends_the_run():
    loader = DataLoader(StreamDies(), batch_size=10, num_workers=1)
    with pytest.raises(BatchError, match="data loader: got "):
        evaluate(torch.nn.Identity(), loader, METRIC, device="cpu", on_error="skip")


class Unshared(IterableDataset):
    """Every worker gives all of it."""

    def __len__(self):
        return 103

    def __iter__(self):
        return ((torch.eye(2)[k % 2], k % 2, k) for k in range(103))


@pytest.mark.parametrize("batch_size", [8, 200])
def test_workers_that_do_not_share_the_samples_of_a_stream_are_refused(batch_size):
    loader = DataLoader(Unshared(), batch_size=batch_size, num_workers=2)
    how = {"inputs": 0, "target": 1, "device": "cpu"}
    with pytest.raises(ConfigError, match=r"more samples from 2 workers than the 103 that len\(dataset\) says"):
        evaluate(torch.nn.Identity(), loader, METRIC, **how)
    assert count(evaluate(torch.nn.Identity(), loader, METRIC, ids=2, **how)) == 103
    every_row = evaluate(torch.nn.Identity(), (batch for batch in loader), METRIC, **how)
    assert count(every_row) == 206


def count(report):
    return report.sections[0].values[0].count


def test_the_batches_of_a_stream_are_bounded_where_their_rows_are_not_its_samples():
    """Three workers may each end with a batch that is not full."""
    length = StatedLength(samples=10, batch_size=4, workers=3, is_counted=False)
    assert len(list(length.checked(iter(range(5))))) == 5
    with pytest.raises(ConfigError, match="than the 10 that"):
        list(length.checked(iter(range(6))))
