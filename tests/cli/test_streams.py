"""What is written is written before it is printed, and a reader that goes away changes neither files nor exit code."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys

import numpy as np
import pytest

from assay.cli.output import write_then_show
from assay.report import Report, Section, Value
from thinning import one_of_each

ASSAY = f"{shlex.quote(sys.executable)} -m assay"
MODULE = """
import torch
from torch.utils.data import TensorDataset
def model(): return torch.nn.Linear(4, 3)
def data(): return TensorDataset(torch.ones(41, 4), torch.zeros(41, dtype=torch.int64))
"""


def shell(command, folder):
    script = f"set -o pipefail; {command}"
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("streams")
    (folder / "given.py").write_text(MODULE, "utf-8")
    (folder / "old.py").write_text("from torchmetrics.classification import BinaryAccuracy\nm = BinaryAccuracy()\n")
    for name, value in (("low", 0.5), ("high", 0.9)):
        section = Section("Evaluation", tuple(Value(f"metric {k}", value, count=10) for k in range(3000)))
        Report(name, (section,)).save(folder / f"{name}.json")
    return folder


EVALUATE = "evaluate given:model --data given:data --metrics accuracy:num_classes=3 --device cpu --out"
GATE = "gate high.json --point --min 'metric 0'"


@pytest.mark.parametrize(
    ("command", "reader", "files"),
    [
        (f"{EVALUATE} a", "| head -2", ["a/report.json", "a/report.html"]),
        (f"{EVALUATE} b --json", "| true", ["b/report.json", "b/report.html"]),
        (f"{EVALUATE} c", ">&-", ["c/report.json", "c/report.html"]),
        (f"{EVALUATE} d", ">&- 2>&-", ["d/report.json", "d/report.html"]),
        ("compare low.json high.json --out e.json --html e.html", "| head -1", ["e.json", "e.html"]),
        ("migrate old.py --write", "| true", []),
    ],
    ids=["head", "json", "closed", "both closed", "compare", "migrate"],
)
@pytest.mark.exhaustive
def test_a_reader_that_goes_away_loses_no_file(folder, command, reader, files):
    done = shell(f"{ASSAY} {command} {reader}", folder)
    assert (done.returncode, done.stderr.count("Traceback"), done.stderr.count("rror")) == (0, 0, 0), done.stderr
    for file in files:
        assert (folder / file).stat().st_size > 100
        if file.endswith("report.json"):
            Report.load(folder / file)


@pytest.mark.parametrize(("least", "code"), [(0.8, 0), (0.95, 1)])
@pytest.mark.parametrize("reader", ["| true", ">&-"])
@one_of_each()
def test_a_verdict_is_the_exit_code_whoever_reads(folder, least, code, reader):
    done = shell(f"{ASSAY} {GATE}={least} {reader}", folder)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.exhaustive  # it starts processes
def test_a_full_disk_behind_the_output_is_an_error_after_the_files(folder):
    done = shell(f"{ASSAY} {EVALUATE} full >/dev/full", folder)
    assert done.returncode == 2
    assert "assay: [Errno 28]" in done.stderr
    assert "Traceback" not in done.stderr
    Report.load(folder / "full" / "report.json")


def test_what_cannot_be_written_is_printed_all_the_same():
    shown = []

    def full():
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_then_show(full, lambda: shown.append("report"))
    assert shown == ["report"]


@pytest.mark.parametrize("option", ["--out", "--resume"])
@pytest.mark.exhaustive
def test_an_address_is_no_folder(folder, option):
    done = shell(f"{ASSAY} {EVALUATE} x {option} s3://bucket/x", folder)
    assert done.returncode == 2
    assert "s3://bucket/x" in done.stderr
    assert not (folder / "s3:").exists()


@pytest.mark.exhaustive  # it starts processes
def test_a_run_resumes_only_with_the_file_that_it_began_with(folder):
    x, y = np.ones((41, 4), np.float32), np.zeros(41, np.int64)
    np.savez(folder / "a.npz", x=x, y=y)
    y[23] = 1  # between the samples that are read
    np.savez(folder / "b.npz", x=x, y=y)
    found = []
    for name in ("a", "a", "b"):
        command = f"{ASSAY} evaluate given:model --data {name}.npz --target y --metrics accuracy:num_classes=3"
        found.append(shell(f"{command} --device cpu --resume same", folder))
    assert [done.returncode for done in found] == [0, 0, 2]
    assert "a checkpoint of other data" in found[2].stderr
