from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

HEAVY = {
    *("scipy", "matplotlib", "jinja2", "rich", "typer", "yaml", "pandas", "pyarrow", "PIL", "sklearn", "transformers"),
    *("triton", "torchmetrics", "ignite", "html", "xml", "multiprocessing", "filelock"),
}
PARTS = ("render", "report", "evaluation", "audit", "cli", "quantize", "pretend", "scoring", "wrappers", "language")
NOT_NEEDED = tuple(f"assay.{name}" for name in PARTS)


PACKAGE = """
from typing import TYPE_CHECKING
from assay._lazy import attach

if TYPE_CHECKING:
    from math import missing as missing
    from math import sqrt as sqrt

__all__, __getattr__, __dir__ = attach(__name__)


def function():
    from math import cbrt
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "some_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("some_package")
    for name in [each for each in sys.modules if each.partition(".")[0] == "some_package"]:
        del sys.modules[name]


def test_a_name_is_found_in_its_home_and_kept(package):
    import math

    assert "sqrt" not in vars(package)
    assert package.sqrt is math.sqrt
    assert vars(package)["sqrt"] is math.sqrt


def test_names_are_listed_before_they_are_used(package):
    assert package.__all__ == ["missing", "sqrt"]
    assert set(package.__all__) <= set(dir(package))


def test_other_names_are_attribute_errors(package):
    with pytest.raises(AttributeError, match="module 'some_package' has no attribute 'cbrt'"):
        _ = package.cbrt


def test_a_home_without_the_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="'math' has no attribute 'missing'"):
        _ = package.missing


@pytest.mark.parametrize(
    ("code", "most"),
    [("import assay", 4), ("from assay import Accuracy, F1Score", 76), ("from assay import Accuracy, Meter", 130)],
)
def test_metrics_and_meters_import_little_besides_torch(code, most):
    found = f"import sys, torch; before = set(sys.modules); {code}; print(*sorted(set(sys.modules) - before))"
    new = subprocess.run([sys.executable, "-c", found], capture_output=True, text=True, check=True).stdout.split()
    assert "assay" in new
    assert len([name for name in new if name.startswith("assay")]) <= most
    assert not {name.partition(".")[0] for name in new} & HEAVY
    assert not [name for name in new if name.startswith(NOT_NEEDED)]


def test_packages_are_imported_when_they_are_first_used():
    code = (
        "import assay, sys; before = 'assay.report' in sys.modules; print(before, assay.report.Report is assay.Report)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_dir_lists_what_is_public():
    import assay

    public = [name for name in dir(assay) if not name.startswith("_")]
    assert {"Accuracy", "evaluate", "compare", "metrics", "errors"} <= set(public)
    assert not {"attach", "TYPE_CHECKING", "annotations", "tally"} & set(public)


@pytest.mark.parametrize(
    ("package", "name", "do"),
    [
        ("assay.metrics", "Acuracy", r"did you mean Accuracy\?"),
        ("assay.metrics", "RMSE", r"write MeanSquaredError\(squared=False\)"),
        (
            "assay.metrics",
            "MulticlassAccuracy",
            r"write Accuracy\(num_classes=...\), or import .* assay.compat.torchmetrics.classification$",
        ),
        ("assay.metrics", "MeanMetric", r"write Mean\(\), or write assay.compat.torchmetrics for torchmetrics in"),
        ("assay.metrics", "multiclass_accuracy", r"write Accuracy\(num_classes=...\), or"),
        ("assay", "MetricCollection", r"write Meter\(...\), or write assay.compat.torchmetrics for torchmetrics"),
        ("assay.metrics", "TopKAccuracy", r"write Accuracy\(num_classes=..., top_k=...\)"),
        (
            "assay.compat.torchmetrics",
            "MulticlassAccuracy",
            "write from assay.compat.torchmetrics.classif",
        ),
        ("assay.compat.torchmetrics", "Acuracy", r"did you mean Accuracy\?"),
        ("assay.compat.torchmetrics.classification", "MulticlasAccuracy", r"did you mean MulticlassAccuracy\?"),
        ("assay", "ROC", "write from assay.metrics import ROC"),
        ("assay", "MSE", r"write MeanSquaredError\(\)"),
        ("assay", "cbrt_of_nothing", "cannot import name 'cbrt_of_nothing' from 'assay'$"),
    ],
)
def test_imports_of_names_that_there_are_not_say_what_to_write(package, name, do):
    with pytest.raises(ImportError, match=do):
        exec(f"from {package} import {name}")
    assert not hasattr(sys.modules[package], name)


def test_modules_that_no_package_lists_are_imported():
    from assay import tally

    assert tally.__name__ == "assay.tally"


def test_scoring_a_table_imports_no_loop_and_no_comparison():
    code = "import sys; from assay.scoring import score; print(*sys.modules)"
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "assay.evaluation.results.report_section" in new
    unused = ("evaluation.evaluate_model", "evaluation.loop", "evaluation.model.forward", "evaluation.resume")
    unused += ("report.comparing", "report.gating", "report.many_reports", "report.planning")
    assert not [name for name in new if name.startswith(tuple(f"assay.{each}" for each in unused))]


@pytest.mark.parametrize(
    ("command", "most", "unused"),
    [
        ("evaluate", 390, ()),
        ("verify", 285, ("scoring", "evaluation.loop", "evaluation.evaluate_model", "cli.loaders", "cli.evaluate")),
        ("stable", 356, ("evaluation.loop",)),
    ],
)
def test_commands_import_no_compiler_of_torch_and_only_what_they_run(command, most, unused):
    code = f"import sys, assay.cli.{command}; print(*sys.modules)"
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch._dynamo", "torch._inductor", "sympy"} & set(new)
    assert len([name for name in new if name.startswith("assay")]) <= most
    assert not [name for name in new if name.startswith(tuple(f"assay.{each}" for each in (*unused, "quantize")))]


def test_a_command_imports_no_options_of_others_and_no_torch():
    code = "import sys\nfrom assay.cli.commands import app\napp(['compare', '--help'], standalone_mode=False)\n"
    code += "print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    new = done.stdout.splitlines()[-1].split()
    options = {name for name in new if name.startswith("assay.cli.options.")}
    assert options == {"assay.cli.options.base", "assay.cli.options.reports"}
    assert not {"torch", "numpy"} & set(new)


COMMAND = """
import gc
from dataclasses import dataclass
import typer
from assay.cli.command import add_command

@dataclass(frozen=True)
class Options:
    pass

app = typer.Typer()
add_command(app, "command", Options, "of_a_command")
try:
    app([], standalone_mode=False)
except ZeroDivisionError:
    print("error")
print(gc.isenabled(), gc.get_freeze_count() > 10_000)
"""
MODULE = """
import gc
gc.callbacks.append(lambda *_: print("collected"))
objects = [[] for _ in range(100_000)]
gc.callbacks.clear()
1 / {divisor}
def run(options):
    print("ran")
"""


@pytest.mark.parametrize(("divisor", "printed"), [(1, "ran"), (0, "error")])
def test_the_collector_is_off_while_a_command_is_imported(divisor, printed, tmp_path):
    (tmp_path / "of_a_command.py").write_text(MODULE.format(divisor=divisor))
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{COMMAND}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [printed, "True", "True"]
