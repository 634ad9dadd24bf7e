"""Every example runs as its first lines say."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
HOSTS = sorted((ROOT / "examples" / "integrations").glob("[!_]*.py"))
ENGINES = sorted((ROOT / "examples" / "engines").glob("[!_]*.py"))
HEAVY = ("composer", "mlflow", "ray", "wandb")
"""Hosts that are not installed for the tests; `make test-integrations` runs their examples, too."""


def command(example: Path) -> list[str]:
    """The command in the docstring of an example."""
    words = example.read_text("utf-8").split('"""')[1].strip().splitlines()[-1].split()
    runners = {"python": [sys.executable], "torchrun": [sys.executable, "-m", "torch.distributed.run", "--standalone"]}
    return [*runners[words[0]], *words[1:]]


@pytest.mark.exhaustive  # each takes seconds
@pytest.mark.parametrize("example", [*EXAMPLES, *HOSTS], ids=lambda example: example.name)
def test_example(example: Path) -> None:
    host = example.stem.partition("_")[0]
    if example in HOSTS and host in HEAVY and importlib.util.find_spec(host) is None:
        pytest.skip(f"{host} is not installed")
    run(example)


@pytest.mark.slow
@pytest.mark.parametrize("example", ENGINES, ids=lambda example: example.name)
def test_example_of_an_engine(example: Path) -> None:
    engine = example.stem.partition("_")[0].replace("spark", "pyspark")
    if importlib.util.find_spec(engine) is None or (engine == "pyspark" and shutil.which("java") is None):
        pytest.skip(f"{engine} is not installed")
    run(example)


def run(example: Path) -> None:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(command(example), cwd=ROOT, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "samples" in done.stdout
