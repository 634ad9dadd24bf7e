"""An evaluation under torchrun that loses a process resumes from its checkpoints, also with more processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import json, os, sys
import torch
from torch.utils.data import TensorDataset
from assay import AUROC, Accuracy, evaluate

folder = sys.argv[1]
generator = torch.Generator().manual_seed(0)
data = TensorDataset(torch.rand(96, generator=generator), torch.randint(2, (96,), generator=generator))


class Model:  # kills the second process once; how many batches it has seen is no part of what it is
    batches = 0

    def __call__(self, x):
        self.batches += 1
        first_start = os.environ.get("RANK") == "1" and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
        if sys.argv[2] == "dies" and first_start and self.batches == 4:
            os.kill(os.getpid(), 9)
        return x

    def __reduce__(self):
        return Model, ()


report = evaluate(
    Model(), data, {"accuracy": Accuracy(), "AUROC": AUROC()}, batch_size=8, device="cpu", resume=folder,
    run_id="torchrun", checkpoint_every=0.0, rank_timeout_s=20.0, n_resamples=25, progress=False,
)
if os.environ.get("RANK", "0") == "0":
    (section,) = report.sections
    run = dict(row[:2] for row in next(each for each in section.tables if each.name == "Run").rows)
    values = [[each.name, each.value, each.lower, each.upper] for each in section.values]
    samples = section.samples.column("correct").tolist()
    found = [values, samples, report.notes[0]]
    print(json.dumps([found, int(run["samples from checkpoints"]), run["processes"]]), file=open(folder + ".json", "w"))
"""


@pytest.fixture
def launch(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)

    def run(name, dies, *arguments):
        """Run the script, under torchrun where there are arguments: the exit status and what was found."""
        torchrun = ["-m", "torch.distributed.run", *arguments] if arguments else []
        command = [sys.executable, *torchrun, str(tmp_path / "script.py"), str(tmp_path / name), dies]
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
        out = tmp_path / f"{name}.json"
        return done, json.loads(out.read_text()) if out.exists() else None

    return run


@pytest.mark.slow
def test_a_killed_process_is_restarted_and_the_evaluation_resumes(launch):
    _, (expected, _, _) = launch("alone", "lives")
    done, found = launch("restarted", "dies", "--nproc-per-node=2", "--max-restarts=1")
    assert done.returncode == 0, done.stderr
    assert found[0] == expected
    assert found[1] > 0
    assert found[2] == "2"


@pytest.mark.slow
def test_another_number_of_processes_goes_on(launch):
    _, (expected, _, _) = launch("alone", "lives")
    done, found = launch("killed", "dies", "--nproc-per-node=2", "--max-restarts=0")
    assert done.returncode != 0
    assert found is None
    done, found = launch("killed", "lives", "--nproc-per-node=3")
    assert done.returncode == 0, done.stderr
    assert found[0] == expected
    assert found[1] > 0
    assert found[2] == "3"
