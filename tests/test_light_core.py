"""What needs no extra of assay, and the errors that name the extra of the rest."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = {
    "cli": ("typer", "rich", "click"),
    "pages": ("jinja2",),
    "plots": ("matplotlib",),
    "audit": ("yaml",),
}
REPORT = """
import torch, assay
report = assay.evaluate(torch.nn.Identity(), (torch.eye(3), torch.tensor([0, 1, 1])), assay.Accuracy(num_classes=3))
"""


def run(code, *absent):
    """What a program prints where packages are not installed."""
    block = f"import sys; sys.modules.update(dict.fromkeys({[*absent]}))\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)


def test_metrics_and_meters_need_torch_and_numpy_alone():
    names = [name for names in EXTRAS.values() for name in names]
    code = """
from assay.metrics import *
from assay import Meter
import assay.compat, assay.wrappers
meter = Meter("accuracy,f1"); meter.update([0, 1], [1, 1])
print(float(meter.compute()["accuracy"]), float(Accuracy()([0, 1], [1, 1])))
"""
    assert run(code, *names, "scipy", "safetensors", "filelock", "pandas", "pyarrow").stdout == "0.5 0.5\n"


def test_reports_are_measured_and_what_shows_them_names_its_extra():
    code = REPORT + "print(repr(report))\n"
    for call in ("str(report)", "report._repr_html_()", "report.plot()"):
        code += f"try: {call}\nexcept assay.errors.MissingDependencyError as error: print(error)\n"
    code += "from assay.devices.operators.overloads import _load\n"
    code += "try: _load('')\nexcept assay.errors.MissingDependencyError as error: print(error)\n"
    found = run(code, *(name for names in EXTRAS.values() for name in names))
    lines = found.stdout.splitlines()
    assert lines[0].startswith("<Report"), found.stderr
    assert [re.search(r'pip install "assay\[(\w+)\]"', line)[1] for line in lines[1:]] == [*EXTRAS]


def test_the_command_line_without_its_packages_says_what_to_install():
    found = run("import runpy; runpy.run_module('assay', run_name='__main__')", "typer", "rich")
    assert (found.returncode, found.stdout) == (2, "")
    assert "assay: typer: got no such package" in found.stderr
    assert found.stderr.count("\n") == 1


def test_extras_bring_what_errors_name_and_all_has_them():
    extras = PROJECT["optional-dependencies"]
    assert [re.split("[><=]", each)[0] for each in PROJECT["dependencies"]][:4] == [
        "torch",
        "numpy",
        "scipy",
        "safetensors",
    ]
    assert set(EXTRAS) <= set(re.findall(r"\w+", extras["all"][0]))
    source = Path(__file__).parents[1] / "src" / "assay"
    named = {name for path in source.rglob("*.py") for name in re.findall(r'extra="(\w+)"', path.read_text("utf-8"))}
    assert named <= set(extras)


@pytest.mark.parametrize("extra", [*EXTRAS])
def test_packages_of_an_extra_are_declared(extra):
    declared = " ".join(PROJECT["optional-dependencies"][extra]).lower()
    names = {"yaml": "pyyaml", "click": "typer"}  # which brings it
    assert all(names.get(name, name) in declared for name in EXTRAS[extra])
