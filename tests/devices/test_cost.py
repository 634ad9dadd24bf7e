from __future__ import annotations

import sys
import time

import pytest
import torch

from assay.devices.cost import cost


def test_time_is_that_of_the_block():
    with cost("cpu") as found:
        time.sleep(0.02)
    assert 0.02 <= found.seconds < 10


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak of a process is started anew on Linux only")
def test_the_peak_is_that_of_the_block():
    def peak(size):
        with cost("cpu") as found:
            torch.ones(size // 4)
        return found.peak_bytes

    large, small = peak(400 * 2**20), peak(2**20)
    assert large - small > 300 * 2**20


def test_a_block_that_fails_is_measured_and_raises():
    with pytest.raises(ZeroDivisionError), cost("cpu") as found:
        1 / 0  # noqa: B018
    assert found.seconds > 0
