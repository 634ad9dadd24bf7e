"""Storages of pretend tensors, and tensors on their way between processes."""

from __future__ import annotations

import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from assay.pretend.errors import PretendError
from thinning import every_third


class OnDevice(Dataset):
    """Rows that a worker finds on the device, because the parent process made them there."""

    def __init__(self, row: torch.Tensor) -> None:
        self.row = row

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> torch.Tensor:
        return self.row


def first(rows: list[torch.Tensor]) -> torch.Tensor:
    return rows[0]


def native(device) -> None:
    if device.engine != "native":
        with pytest.raises(PretendError, match="storage"):
            torch.ones(2, device=device.device).untyped_storage()
        pytest.skip("refused by this engine, as asserted")


def test_a_storage_is_resized(there):
    native(there)
    x = torch.arange(6.0, device=there.device)
    storage = x.untyped_storage()
    for size in (1000, 24, 1 << 20):
        assert storage.resize_(size) is storage
        assert (storage.nbytes(), storage.device) == (size, there.device)
        assert x.tolist() == [0, 1, 2, 3, 4, 5]
    storage.resize_(8)
    assert x[:2].tolist() == [0, 1]


def test_a_tensor_whose_storage_was_freed_raises(there):
    native(there)
    x = torch.ones(1 << 16, device=there.device)
    x.untyped_storage().resize_(0)
    for use in (x.sum, lambda: x + 1, lambda: x.fill_(1), x.cpu, x.clone, lambda: x.copy_(torch.ones(1 << 16))):
        with pytest.raises(RuntimeError, match=r"262144 bytes.*resized to 0"):
            use()
    assert x.view(2, -1).shape == (2, 1 << 15)
    x.untyped_storage().resize_(4 << 16)
    assert x.fill_(2).sum().item() == 2 << 16


@every_third  # a process that ends by an error is waited for
@pytest.mark.parametrize("collate", [None, first], ids=["collated", "one"])
def test_a_worker_that_returns_tensors_of_the_device_raises(there, collate):
    loader = DataLoader(OnDevice(torch.ones(3, device=there.device)), 2, num_workers=1, collate_fn=collate, timeout=60)
    with pytest.raises((PretendError, RuntimeError), match=r"worker(?s:.*)(num_workers=0|re-initialize|pretended)"):
        list(loader)


def test_a_loader_without_workers_may_return_tensors_of_the_device(there):
    batches = list(DataLoader(OnDevice(torch.ones(3, device=there.device)), 2))
    assert [(batch.device, batch.shape) for batch in batches] == [(there.device, (2, 3))] * 2
