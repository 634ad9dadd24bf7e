from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import ConfigError, StateError
from assay.metrics import Accuracy
from assay.report import Report

MODULE = """
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    def model():
        return torch.nn.Linear(4, 3)

    def needs(width):
        return torch.nn.Linear(width, 3)

    def number():
        return 7

    ready = torch.nn.Linear(4, 3)

    def data():
        generator = torch.Generator().manual_seed(1)
        return TensorDataset(torch.randn(41, 4, generator=generator), torch.randint(3, (41,), generator=generator))

    def padded():
        held = data()
        return DataLoader(held, batch_size=4, sampler=DistributedSampler(held, shuffle=False))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "given.py").write_text(textwrap.dedent(MODULE), "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    sys.modules.pop("given", None)


def invoke(*arguments):
    return CliRunner().invoke(app, ["evaluate", *arguments], catch_exceptions=True)


def acc(*more):
    return ("--metrics", "acc=accuracy:num_classes=3", "--device", "cpu", *more)


def value(text):
    return Report.from_json(text).sections[0].values[0].value.hex()


def test_a_model_and_data_that_are_named(folder):
    done = invoke("given:model", "--data", "given:data", *acc("--out", "found", "--json", "--title", "Named"))
    assert done.exit_code == 0, done.output
    report = Report.load(folder / "found" / "report.json")
    assert report.title == "Named"
    assert report.sections[0].values[0].name == "acc"
    assert "<html" in (folder / "found" / "report.html").read_text("utf-8")
    shown = invoke("given:ready", "--data", "given:data", *acc())
    assert "41 expected, 41 seen, 0 twice, 0 missed" in shown.output


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth"])
def test_weights_with_a_factory(folder, ending):
    torch.manual_seed(5)
    net = torch.nn.Linear(4, 3)
    file = folder / f"weights{ending}"
    state = net.state_dict()
    save_file(state, file) if ending == ".safetensors" else torch.save({"state_dict": state}, file)
    done = invoke(file.name, "--factory", "given:model", "--data", "given:data", *acc("--json"))
    assert done.exit_code == 0, done.output
    import given

    expected = Accuracy(num_classes=3)(net(given.data().tensors[0]).detach(), given.data().tensors[1])
    assert value(done.stdout) == float(expected).hex()


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("given", "--data", "given:data"), ConfigError, "MODEL: got 'given', expected package.module:function"),
        (("nothing:model", "--data", "given:data"), ConfigError, "got nothing:model, but no module nothing"),
        (("given:none", "--data", "given:data"), ConfigError, "got given:none, but given has no none"),
        (("given:needs", "--data", "given:data"), ConfigError, "given:needs: got a function that needs width"),
        (("given:number", "--data", "given:data"), ConfigError, "given:number: got int, expected a module"),
        (("given:model", "--data", "given:number"), ConfigError, "data: got int, expected a data loader"),
        (("other.pt", "--data", "given:data"), ConfigError, "MODEL: got weights in other.pt, expected a model to load"),
        (("a.pt", "--factory", "given:model", "--data", "given:data"), ConfigError, "a.pt, which is no file"),
        (("bad.pt", "--factory", "given:model", "--data", "given:data"), StateError, "got a file that cannot be read"),
        (("other.pt", "--factory", "given:model", "--data", "given:data"), ConfigError, "size mismatch for weight"),
    ],
)
def test_what_is_not_there_is_told(folder, arguments, kind, message):
    (folder / "bad.pt").write_bytes(b"no weights")
    torch.save(torch.nn.Linear(5, 3).state_dict(), folder / "other.pt")
    done = invoke(*arguments, *acc())
    assert isinstance(done.exception, kind), done.output
    assert message in str(done.exception)


def torchrun(folder, size, *arguments):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    done = subprocess.run(
        [*command, "-m", "assay", "evaluate", *arguments],
        cwd=folder,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_under_torchrun_it_gives_the_bits_of_one_process(folder):
    alone = invoke("given:model", "--data", "given:data", *acc("--json", "--batch-size", "4"))
    assert alone.exit_code == 0, alone.exception
    together = torchrun(folder, 2, "given:model", "--data", "given:padded", *acc("--json", "--resume", "kept"))
    assert value(together) == value(alone.stdout)
    tables = {table["name"]: table["rows"] for table in json.loads(together)["sections"][0]["tables"]}
    proof = {row[0]: row[1] for row in tables["Every sample once"]}
    assert (proof["expected"], proof["seen"], proof["twice"], proof["missed"]) == (41, 41, 0, 0)
    assert proof["given again, and not counted again"] == 1
    assert sorted(path.name for path in (folder / "kept").iterdir()) == ["rank-0.safetensors", "rank-1.safetensors"]
    resumed = invoke("given:model", "--data", "given:data", *acc("--json", "--resume", "kept"))
    assert resumed.exit_code == 0, resumed.exception
    assert value(resumed.stdout) == value(alone.stdout)
    assert [path.name for path in (folder / "kept").iterdir()] == ["rank-0.safetensors"]
