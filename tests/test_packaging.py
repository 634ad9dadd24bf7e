"""What is declared about packages in several places is the same, and what workflows name is there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

import assay

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
WORKFLOWS = sorted([*(ROOT / ".github").rglob("*.yml"), *(ROOT / "examples" / "github_actions").glob("*.yml")])


def test_python_versions_are_those_of_the_workflow() -> None:
    declared = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d", each)]
    ci = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))
    assert ci["jobs"]["tests"]["strategy"]["matrix"]["python"] == declared
    assert PROJECT["requires-python"] == f">={declared[0]}"


def test_the_wheel_is_tried_on_each_python_where_there_is_no_compiler() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8"))["jobs"]
    job = jobs["wheel-without-a-compiler"]
    assert job["strategy"]["matrix"] == {"python": jobs["tests"]["strategy"]["matrix"]["python"]}
    assert job["container"].endswith("-slim")  # these images have no compiler, which a step checks
    commands = [step["run"] for step in job["steps"] if "run" in step]
    assert commands[-2:] == ["python -m pip install dist/*.whl", "python -W error -m assay.selftest"]


def test_a_release_runs_the_self_test_of_each_compiled_wheel() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))["jobs"]
    (step,) = (step for step in jobs["wheels"]["steps"] if "assay.selftest" in step.get("run", ""))
    assert "pip install dist/*.whl" in step["run"]


def test_the_citation_has_the_version() -> None:
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"] == assay.__version__


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_of_workflows_are_there(path: Path) -> None:
    yaml.safe_load(path.read_text("utf-8"))
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    used = {word for run in re.findall(r"run: make (.*)", path.read_text("utf-8")) for word in run.split()}
    assert {word for word in used if "=" not in word} <= {*targets}


def test_the_example_that_audits_cuda_installs_a_build_that_can_pretend_it() -> None:
    """On the build for CUDA, which PyPI has for Linux, a pretended cuda is refused."""
    (job,) = yaml.safe_load((ROOT / "examples" / "github_actions" / "audit.yml").read_text("utf-8"))["jobs"].values()
    assert any("cuda" in step.get("run", "") for step in job["steps"])
    assert job["env"]["PIP_EXTRA_INDEX_URL"].endswith("/whl/cpu")


def test_the_hook_runs_a_command_of_assay() -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    assert hook["entry"] == "assay audit"
    assert PROJECT["scripts"]["assay"] == "assay.cli:main"
