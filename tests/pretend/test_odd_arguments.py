"""No arguments of an operator end the process on a pretend device, where they do not end it on the CPU as well."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from assay.devices.operators.overloads import overloads

SCRIPT = Path(__file__).with_name("odd_arguments.py")
MANY = 300
LEFT_OUT = ("record_stream", "set_", "resize", "_cudnn", "quantize", "mkldnn", "_foreach_", "rand", "_pin_memory")
LIMIT_S = 400


def drawn() -> list[str]:
    names = [name for name, overload in overloads().items() if {"CPU"} & {*overload.kernels}]
    names = [name for name in names if not any(part in name for part in LEFT_OUT)]
    always = [name for name in names if "histogram" in name or "index_put" in name or "histc" in name]
    return [*always, *random.Random(0).sample(sorted({*names} - {*always}), MANY)]


def crashes(names: list[str], *arguments: str) -> list[str]:
    """The operators at which the process ended; the others are called in further processes."""
    ended, left = [], list(names)
    while left:
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], input=json.dumps(left), capture_output=True,
                              text=True, timeout=LIMIT_S, check=False)  # fmt: skip
        if done.returncode == 0:
            return ended
        begun = done.stdout.split()
        assert begun, done.stderr
        ended.append(begun[-1])
        left = left[len(begun) :]
    return ended


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "engine"),
    [
        ("mps", "native"), ("cuda", "native"), ("xpu", "native"), ("npu", "native"), ("hpu", "native"),
        ("xpu", "python"), ("musa", "python"), ("mlu", "python"),
    ],
)  # fmt: skip
def test_no_arguments_end_the_process(kind, engine):
    ended = crashes(drawn(), kind, engine)
    assert [name for name in ended if name not in crashes(ended, "cpu", "none")] == []
