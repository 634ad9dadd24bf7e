"""no_sync and no_float64, without a device, on a pretend one, and what they must not complain about."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from assay.audit.block_checks import no_float64, no_sync
from assay.pretend import pretend

WAITS = {
    "item": lambda x: x.sum().item(),
    "bool": lambda x: bool(x.any()),
    "nonzero": lambda x: x.nonzero(),
    "mask": lambda x: x[x > 1],
    "masked_select": lambda x: x.masked_select(x > 1),
    "unique": lambda x: x.unique(),
    "bincount": lambda x: x.bincount(),
    "equal": lambda x: torch.equal(x, x),
    "repeat_interleave": lambda x: x.repeat_interleave(x),
}
QUIET = {
    "sum": lambda x: x.sum(),
    "where": lambda x: torch.where(x > 1, x, 0),
    "gather": lambda x: x.gather(0, x % 2),
    "index_add_": lambda x: x.clone().index_add_(0, x % 2, x),
    "repeat_interleave by a number": lambda x: x.repeat_interleave(2),
    "masked_fill": lambda x: x.masked_fill(x > 1, 0),
}
PLACES = ("cpu", "cuda", "mps", "xpu")


def on(place: str, check, block) -> None:
    """Run a block in a check on the CPU, or on a pretend device."""
    if place == "cpu":
        with check():
            block(torch.arange(5))
        return
    with pretend(place) as machine:
        x = torch.arange(5).to(machine.device)
        with check():
            block(x)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", WAITS)
def test_waiting_is_an_error_that_names_the_line(name, place):
    with pytest.raises(AssertionError) as raised:
        on(place, no_sync, WAITS[name])
    told = str(raised.value).splitlines()
    assert told[0] == "synchronizes with the device:"
    assert re.match(rf"  aten::\w+(\.\w+)? at {re.escape(__file__)}:\d+", told[1]), told
    assert told[2].strip() in Path(__file__).read_text()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", QUIET)
def test_what_does_not_wait_passes(name, place):
    on(place, no_sync, QUIET[name])


def test_each_line_is_told_once_with_its_count():
    def block() -> None:
        with no_sync():
            for row in torch.ones(3, 2):
                float(row.sum())

    with pytest.raises(AssertionError, match=r"_local_scalar_dense at .* \(3 times\): a value is copied to the CPU"):
        block()


@pytest.mark.parametrize("device", ["cuda", "xpu"])
def test_copies_wait_unless_they_are_asked_not_to(device):
    with pretend(device) as machine:
        host, there = torch.ones(3), torch.ones(3, device=machine.device)
        pinned = host.pin_memory()
        with no_sync():
            pinned.to(machine.device, non_blocking=True)
        for copy in (lambda: host.to(machine.device), lambda: there.cpu(), lambda: there.copy_(pinned)):
            with pytest.raises(AssertionError, match=r"synchronizes with the device:\n  aten::copy_ at "), no_sync():
                copy()


def test_the_cpu_may_be_read_where_there_is_a_device():
    with pretend("cuda") as machine:
        x = torch.ones(3, device=machine.device)
        with no_sync():
            x + float(torch.ones(3).sum())
            float(torch.ones(3).sum())


def test_waiting_for_the_device_in_so_many_words_is_seen_by_its_events():
    with pretend("cuda"), pytest.raises(AssertionError, match=r"torch.cuda.synchronize"), no_sync():
        torch.cuda.synchronize()


def test_an_error_in_the_block_is_not_hidden():
    with pytest.raises(ZeroDivisionError), no_sync():
        torch.ones(1).item() / 0
    with pytest.raises(ZeroDivisionError), no_float64():
        torch.ones(1).double() / (1 // 0)


@pytest.mark.parametrize("place", ["cpu", "cuda", "xpu"])
@pytest.mark.parametrize(
    ("block", "why"),
    [
        (lambda x: x.double(), "makes float64 of int64"),
        (lambda x: x.sum(dtype=torch.float64), "makes float64 of int64"),
        (lambda x: torch.zeros(2, dtype=torch.float64, device=x.device), "makes float64"),
        (lambda x: torch.fft.fft(x.double()), "makes float64 of int64"),
        (lambda x: x.to(torch.complex128), "makes complex128 of int64"),
    ],
)
def test_float64_is_an_error_that_names_where_it_comes_from(block, why, place):
    with pytest.raises(AssertionError) as raised:
        on(place, no_float64, block)
    told = str(raised.value).splitlines()
    assert told[0] == "float64 appears on the device:"
    assert f"{__file__}:" in told[1]
    assert told[1].endswith(why)
    assert len(told) == 3  # only where it begins


def test_float64_that_the_inputs_bring_passes():
    x = torch.ones(3, dtype=torch.float64)
    with no_float64():
        (x * 2).sum()


def test_float64_on_the_host_passes_where_there_is_a_device():
    with pretend("cuda") as machine:
        x = torch.ones(3, device=machine.device)
        with no_float64():
            (x * 2.5).cpu().double().mean()
