"""No arguments of an operator end the process on a pretend device, where they do not end it on the CPU as well."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from assay.devices.kinds import PRETENDED
from assay.devices.operators.overloads import overloads

SCRIPT = Path(__file__).with_name("odd_arguments.py")
LEFT_OUT = ("record_stream", "set_", "resize", "_cudnn", "quantize", "mkldnn", "_foreach_", "rand", "_pin_memory")


def operators() -> list[str]:
    """The operators with a kernel of their own on the CPU."""
    names = [name for name, overload in overloads().items() if "CPU" in overload.kernels]
    return [name for name in names if not any(part in name for part in LEFT_OUT)]


def crashes(names: list[str], *arguments: str) -> list[str]:
    """The operators at which the process ended; the others are called in further processes.

    The process limits the CPU time of each operator itself, so that a busy machine changes nothing.
    """
    ended, left = [], list(names)
    while left:
        done = subprocess.run([sys.executable, str(SCRIPT), *arguments], input=json.dumps(left), capture_output=True,
                              text=True, check=False)  # fmt: skip
        if done.returncode == 0:
            return ended
        begun = done.stdout.split()
        assert begun, done.stderr
        ended.append(begun[-1])
        left = left[len(begun) :]
    return ended


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["native", "python"])
@pytest.mark.parametrize("kind", PRETENDED)
def test_no_arguments_end_the_process(kind, engine):
    ended = crashes(operators(), kind, engine)
    assert [name for name in ended if name not in crashes(ended, "cpu", "none")] == []
