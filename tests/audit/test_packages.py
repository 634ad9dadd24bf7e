"""A package as the target: its public classes; metrics of TorchMetrics as their users use them."""

from __future__ import annotations

import importlib

import pytest

from assay.audit import audit
from assay.audit.running.targets import parse, runs_cases, subjects_of

HITS = """
import torch
import torchmetrics

class Hits(torchmetrics.Metric):
    def __init__(self):
        super().__init__(compute_on_cpu=True)
        self.add_state("hits", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("rows", [], dist_reduce_fx="cat")

    def update(self, preds, target):
        self.hits += (preds == target).sum()
        self.rows.append(preds)

    def compute(self):
        return self.hits / torch.cat([row.flatten() for row in self.rows]).numel()

class _Hidden(Hits):
    pass
"""
NET = """
import torch

class Net(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with a metric and a module, which names what is asked for."""

    def make(name: str, init: str, main: str = "") -> str:
        inside = {
            "__init__": init.format(name=name),
            "deep/__init__": "",
            "deep/hits": HITS,
            "net": NET,
            "broken": "import no_such",
        }
        for file, text in inside.items() | ({("__main__", main)} if main else set()):
            path = tmp_path / name / f"{file}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
        return name

    return make


def names_of(name: str) -> list[str]:
    return sorted(found.rpartition(".")[2] for found, _ in subjects_of(importlib.import_module(name)))


def test_the_public_classes_of_a_package_are_taken_wherever_they_are_defined(package):
    name = package("shop_named", "from {name}.deep.hits import Hits, _Hidden\nfrom {name}.net import Net\n")
    assert names_of(name) == ["Hits", "Net"]
    assert runs_cases(parse(name))


def test_a_package_that_names_none_has_those_of_its_modules_that_can_be_imported(package):
    assert names_of(package("shop_plain", "")) == ["Hits", "Net"]


def test_a_package_that_python_runs_is_a_program(package):
    name = package("shop_run", "from {name}.net import Net\n", "print(1)")
    assert not runs_cases(parse(name))


@pytest.mark.exhaustive
def test_states_that_are_registered_or_kept_on_the_cpu_on_purpose_are_no_findings(package):
    name = package("shop_audited", "from {name}.deep.hits import Hits\nfrom {name}.net import Net\n")
    result = audit(name, ["cuda"], engine="python")
    assert result.subjects == 2
    assert not {"mixed-devices", "state-elsewhere", "result-elsewhere"} & {each.rule for each in result.findings}
    assert result.unrun == ()
