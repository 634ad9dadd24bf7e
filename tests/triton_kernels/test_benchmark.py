"""`benchmarks/cuda.py`, where there is no GPU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="it would measure")
def test_without_cuda_it_refuses_in_one_line():
    pytest.importorskip("torchmetrics")
    command = [sys.executable, "-m", "benchmarks.cuda"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.count("\n") == 1
    assert "got no CUDA device" in done.stdout
