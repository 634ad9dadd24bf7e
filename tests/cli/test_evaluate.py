from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from assay.cli import app
from assay.errors import AssayError, ConfigError, StateError
from assay.metrics import Accuracy
from assay.report import Comparison, Report

MODULE = """
    import os
    import signal
    import torch
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    def model():
        return torch.nn.Linear(4, 3)

    def ends():
        network = model()
        network.register_forward_hook(lambda *_: os.kill(os.getpid(), signal.SIGTERM))
        return network

    def needs(width):
        return torch.nn.Linear(width, 3)

    def number():
        return 7

    ready = torch.nn.Linear(4, 3)

    def data():
        generator = torch.Generator().manual_seed(1)
        return TensorDataset(torch.randn(41, 4, generator=generator), torch.randint(3, (41,), generator=generator))

    def twice(batch):
        return batch["features"][:, :4] * 2

    def backwards(batch):
        return ["zyx".index(name) for name in batch["kind"]]

    def empty():
        return TensorDataset(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))

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
    assert "41 expected, 41 counted, 0 duplicated, 0 missed" in shown.output


@pytest.mark.parametrize("ending", [".safetensors", ".pt", ".pth"])
def test_weights_with_a_factory(folder, ending):
    torch.manual_seed(5)
    net = torch.nn.Linear(4, 3)
    file = folder / f"weights{ending}"
    state = net.state_dict()
    save_file(state, file) if ending == ".safetensors" else torch.save({"state_dict": state}, file)
    done = invoke(file.name, "--model-factory", "given:model", "--data", "given:data", *acc("--json"))
    assert done.exit_code == 0, done.output
    import given

    expected = Accuracy(num_classes=3)(net(given.data().tensors[0]).detach(), given.data().tensors[1])
    assert value(done.stdout) == float(expected).hex()


FILLED = ("--model-factory", "given:model", "--data", "given:data")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        (("given", "--data", "given:data"), ConfigError, "MODEL: got 'given', expected an existing file or folder"),
        (("nothing:model", "--data", "given:data"), ConfigError, "got nothing:model, but no module nothing"),
        (("given:none", "--data", "given:data"), ConfigError, "got given:none, but given has no none"),
        (("given:needs", "--data", "given:data"), ConfigError, "given:needs: got a function that needs width"),
        (("given:number", "--data", "given:data"), ConfigError, "given:number: got int, expected a module"),
        (("given:model", "--data", "given:number"), ConfigError, "data: got int, expected a data loader"),
        (("other.pt", "--data", "given:data"), ConfigError, "MODEL: got weights in other.pt, expected a model to load"),
        (("a.pt", *FILLED), ConfigError, "a.pt, which does not exist"),
        (
            ("bad.pt", "--model-factory", "given:model", "--data", "given:data"),
            StateError,
            "got a file that cannot be read",
        ),
        (
            ("other.pt", "--model-factory", "given:model", "--data", "given:data"),
            ConfigError,
            "size mismatch for weight",
        ),
        (
            ("given:model", "--data", "given:data", "--seed", f"{2**64}"),
            ConfigError,
            "--seed: got 18446744073709551616",
        ),
    ],
)
def test_what_is_not_there_is_told(folder, arguments, kind, message):
    (folder / "bad.pt").write_bytes(b"no weights")
    torch.save(torch.nn.Linear(5, 3).state_dict(), folder / "other.pt")
    done = invoke(*arguments, *acc())
    assert isinstance(done.exception, kind), done.output
    assert message in str(done.exception)


def test_reports_of_two_models_are_compared_and_judged(folder):
    for model, more in (("model", ()), ("ready", ("--title", "Of its own"))):
        assert invoke(f"given:{model}", "--data", "given:data", *acc("--out", model, *more)).exit_code == 0
    files = "model/report.json", "ready/report.json"
    compared = CliRunner().invoke(app, ["compare", *files])
    assert compared.exit_code == 0, compared.exception
    assert "paired: McNemar mid-p" in compared.stdout
    judged = CliRunner().invoke(app, ["gate", files[1], "--baseline", files[0], "--max-drop", "acc=1"])
    assert judged.exit_code == 0, judged.output


@pytest.mark.parametrize("versus", [(), ("--variant", "precision=bfloat16")])
def test_no_samples_are_told_in_notes_and_not_by_warnings(folder, versus):
    with warnings.catch_warnings(record=True) as caught:
        done = invoke("given:model", "--data", "given:empty", *acc("--out", "found", *versus))
    assert done.exit_code == 0, done.output
    assert caught == []
    notes = Report.load(next((folder / "found").rglob("report.json"))).notes
    assert any("acc: got no data, expected at least one sample" in note for note in notes)
    assert ("were not compared: there are no samples." in " ".join(done.stdout.split())) == bool(versus)


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


@pytest.mark.exhaustive  # it starts processes
def test_under_torchrun_it_gives_the_bits_of_one_process(folder):
    alone = invoke("given:model", "--data", "given:data", *acc("--json", "--batch-size", "4"))
    assert alone.exit_code == 0, alone.exception
    together = torchrun(
        folder,
        2,
        "given:model",
        "--data",
        "given:padded",
        *acc("--json", "--resume", "kept", "--checkpoint-every", "0.01"),
    )
    assert value(together) == value(alone.stdout)
    tables = {table["name"]: table["rows"] for table in json.loads(together)["sections"][0]["tables"]}
    proof = {row[0]: row[1] for row in tables["Every sample once"]}
    assert (proof["expected"], proof["counted"], proof["duplicated"], proof["missed"]) == (41, 41, 0, 0)
    assert proof["given again, and not counted again"] == 1
    assert sorted(path.name for path in (folder / "kept").iterdir()) == ["rank-0.safetensors", "rank-1.safetensors"]
    resumed = invoke("given:model", "--data", "given:data", *acc("--json", "--resume", "kept"))
    assert resumed.exit_code == 0, resumed.exception
    assert value(resumed.stdout) == value(alone.stdout)
    assert [path.name for path in (folder / "kept").iterdir()] == ["rank-0.safetensors"]


def test_sigterm_ends_it_with_its_exit_code_and_a_checkpoint(folder):
    ended = invoke("given:ends", "--data", "given:data", *acc("--resume", "kept"))
    assert ended.exit_code == 143, ended.exception
    assert [path.name for path in (folder / "kept").iterdir()] == ["rank-0.safetensors"]


def table(folder, rows=41):
    """The samples of `data` as a table, with ids, labels by name and a column to slice by."""
    import given

    x, y = given.data().tensors
    lines = ["id,a,b,c,d,kind,place"]
    for k in range(rows):
        numbers = ",".join(repr(each) for each in x[k].tolist())
        lines.append(f"s{k},{numbers},{'xyz'[int(y[k])]},{'north' if k % 2 else 'south'}")
    (folder / "held.csv").write_text("\n".join(lines), "utf-8")


CONFIG = """
model = "net.pt2"
data = "held.csv"
target = "kind"
features = ["a", "b", "c", "d"]
ids = "id"
slice = ["place"]
device = "cpu"
batch-size = 4
out = "run"

[metrics]
acc = "accuracy:num_classes=3"
"macro F1" = "f1:num_classes=3,average=macro"
"""


@pytest.fixture
def held(folder):
    """A model exported for batches of 8, a table, and a config file that names both."""
    import given

    torch.manual_seed(0)
    net = given.model().eval()
    save_file(net.state_dict(), folder / "net.safetensors")
    torch.export.save(torch.export.export(net, (torch.ones(8, 4),)), folder / "net.pt2")
    table(folder)
    (folder / "run.toml").write_text(CONFIG, "utf-8")
    return folder


@pytest.fixture
def importable(folder, monkeypatch):
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_a_config_file_alone_suffices(importable, held):
    done = invoke("--config", "run.toml")
    assert done.exit_code == 0, done.exception
    report = Report.load(held / "run" / "report.json")
    notes = " ".join(report.notes)
    assert "41 expected, 41 counted, 0 duplicated, 0 missed" in notes
    assert "Model: net.pt2 (an exported program)." in notes
    assert "3 classes in alphabetical order: 0 = x, 1 = y, 2 = z." in notes
    section = report.sections[0]
    assert sorted(each.name for each in section.slices) == ["place = north", "place = south"]
    assert set(section.samples.ids.values) == {f"s{k}" for k in range(41)}
    import given

    x, y = given.data().tensors
    torch.manual_seed(0)
    expected = Accuracy(num_classes=3)(given.model()(x).detach(), y)
    assert section.values[0].value == float(expected)


def test_the_command_line_wins_over_the_file(importable, held):
    done = invoke(
        "given:model",
        "--config",
        "run.toml",
        "--no-keep-samples",
        "--no-diagnostics",
        "--confidence-level",
        "0",
        "--json",
    )
    assert done.exit_code == 0, done.exception
    section = Report.from_json(done.stdout).sections[0]
    assert section.samples is None
    assert section.plots == ()
    assert section.values[0].lower is None


@pytest.mark.exhaustive
def test_forms_on_the_same_samples(importable, held):
    versus = ("--variant", "net.safetensors,model-factory=given:model", "--variant", "precision=bfloat16")
    done = invoke("--config", "run.toml", *versus)
    assert done.exit_code == 0, done.exception
    shown = " ".join(done.stdout.split())
    assert "net.safetensors factory given:model, net.pt2 bfloat16 against net.pt2" in shown
    assert "41 samples have the same outputs to the bit" in shown
    found = Comparison.load(held / "run" / "comparison.json")
    exported, rounded = (found.delta("acc", run=run.name) for run in found.runs[1:])
    assert exported.difference == 0
    assert exported.paired
    assert rounded.paired
    names = {path.name for path in (held / "run").iterdir()}
    assert names >= {"net.pt2", "net.pt2-bfloat16", "comparison.html", "comparison.json"}
    assert invoke("--config", "run.toml", *versus, "--json").stdout.startswith("{")


@pytest.mark.parametrize(
    ("versus", "message"),
    [
        ("net.pt2", "--variant: got net.pt2, expected variants that differ"),
        ("bits=4", "--variant: got 'bits=4', expected MODEL, or one of model"),
        ("compile=maybe", "--variant: got compile=maybe, expected compile=true or compile=false"),
        ("gone.pt2", "MODEL: got gone.pt2, which does not exist"),
        ("int8", "--variant: got int8 of an exported program, expected a module to quantize"),
        ("precision=int4", "precision: got 'int4', expected one of float32, bfloat16, float16"),
    ],
)
def test_forms_that_cannot_be_are_told(importable, held, versus, message):
    done = invoke("--config", "run.toml", "--variant", versus)
    assert isinstance(done.exception, AssayError), done.output
    assert message in str(done.exception)


def test_before_and_after_quantization(importable, held):
    from assay.quantize import plan
    from assay.quantize.files.file import save

    (held / "nets.py").write_text(
        "import torch\ndef net():\n    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 3))\n"
    )
    import nets

    torch.manual_seed(4)
    net = nets.net()
    save_file(net.state_dict(), held / "seq.safetensors")
    save(plan(net, "int8", "cpu").apply(net), held / "small.safetensors")
    named = ("seq.safetensors", "--model-factory", "nets:net", "--config", "run.toml")
    done = invoke(*named, "--variant", "int8", "--variant", "small.safetensors")
    sys.modules.pop("nets", None)
    assert done.exit_code == 0, done.exception
    found = Comparison.load(held / "run" / "comparison.json")
    assert [run.name for run in found.runs] == ["seq.safetensors", "seq.safetensors int8", "small.safetensors"]
    now, stored = (
        float(note.partition("difference is ")[2].partition(",")[0]) for note in found.notes if "difference is" in note
    )
    assert 0 < now == stored < 0.1


@pytest.mark.exhaustive  # it starts processes
def test_ranks_read_a_table_and_give_the_bits_of_one_process(importable, held):
    (held / "run.toml").write_text(CONFIG.replace('out = "run"', ""), "utf-8")
    alone = invoke("--config", "run.toml", "--json")
    assert alone.exit_code == 0, alone.exception
    together = torchrun(held, 2, "--config", "run.toml", "--json", "--variant", "precision=bfloat16")
    found = Comparison.from_json(together)
    assert found.delta("acc").baseline.hex() == value(alone.stdout)
    assert "of 41 samples have the same outputs" in found.notes[0]


def test_functions_of_a_batch_win_over_what_a_file_knows(importable, held):
    functions = ("--inputs", "given:twice", "--target", "given:backwards", "--slice", "kind")
    done = invoke("given:model", "--config", "run.toml", *functions, "--json")
    assert done.exit_code == 0, done.exception
    import given

    x, y = given.data().tensors
    torch.manual_seed(0)
    expected = Accuracy(num_classes=3)(given.model()(2 * x).detach(), 2 - y)
    assert value(done.stdout) == float(expected).hex()


def test_a_summary_says_where_the_tables_are(folder):
    done = invoke("given:model", "--data", "given:data", *acc())
    assert "--verbose" in done.stderr
    assert "Every sample once" in done.stdout
    assert "Per class" not in done.stdout
    whole = invoke("given:model", "--data", "given:data", *acc("--verbose"))
    assert "--verbose" not in whole.stderr
    assert "Per class" in whole.stdout


def test_what_is_printed_whole_says_nothing_of_more(folder):
    done = invoke("given:model", "--data", "given:data", *acc("--variant", "precision=bfloat16"))
    assert done.exit_code == 0, done.exception
    assert "--verbose" not in done.stderr
