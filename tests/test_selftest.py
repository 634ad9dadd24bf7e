"""`python -m assay.selftest`: it passes here, and each of its checks fails where something is wrong."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from assay import decide, selftest
from assay.native import compilation, labels
from assay.native.library import is_cut_short, library
from assay.selftest import CHECKS, SelfTestError

needs_library = pytest.mark.skipif(library() is None, reason="assay has no compiled code here")

WHOLE = compilation.LIBRARY


@pytest.fixture
def fresh_library():
    library.cache_clear()
    yield
    library.cache_clear()


@pytest.fixture
def without_library(monkeypatch, tmp_path, fresh_library):
    monkeypatch.delenv("ASSAY_NATIVE", raising=False)
    for module in (compilation, selftest):
        monkeypatch.setattr(module, "LIBRARY", tmp_path / "_native.so")
    return tmp_path / "_native.so"


def test_all_checks_pass_here_and_say_what_they_checked():
    done = subprocess.run([sys.executable, "-W", "error", "-m", "assay.selftest"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    first, *lines, last = done.stdout.splitlines()
    assert torch.__version__ in first
    assert [line.split(": ")[0] for line in lines] == [f"ok      {name}" for name in CHECKS]
    assert last.startswith(f"all {len(CHECKS)} checks passed")


def test_a_failure_gives_exit_code_1_and_the_other_checks_run(monkeypatch, capsys):
    def broken():
        raise OSError("no such symbol")

    monkeypatch.setattr(selftest, "CHECKS", {"compiled library": broken, "meter": selftest.meter})
    assert selftest.main() == 1
    out = capsys.readouterr().out
    assert "FAILED  compiled library: OSError: no such symbol" in out
    assert "ok      meter: " in out
    assert "1 of 2 checks failed" in out


def only(monkeypatch, name):
    """Let the self-test check one metric."""
    checks = [check for check in selftest.metric_checks() if check.name.startswith(f"{name}(")]
    assert checks
    monkeypatch.setattr(selftest, "metric_checks", lambda: checks)


@needs_library
@pytest.mark.parametrize("check", [selftest.metrics, selftest.same_bits])
def test_a_wrong_result_of_compiled_code_is_found(monkeypatch, check):
    right = labels.first_largest
    only(monkeypatch, "Accuracy")
    monkeypatch.setattr(labels, "first_largest", lambda scores: right(scores).roll(1))
    with pytest.raises(SelfTestError, match="compiled code"):
        check()


def test_a_wrong_result_of_torch_is_found(monkeypatch):
    only(monkeypatch, "Accuracy")
    right = decide.first_largest
    monkeypatch.setattr(decide, "first_largest", lambda scores: right(scores).roll(1))
    with pytest.raises(SelfTestError, match="in torch"):
        selftest.metrics()


def test_metrics_of_a_family_that_are_all_skipped_are_a_failure(monkeypatch):
    only(monkeypatch, "Accuracy")
    with pytest.raises(SelfTestError, match=r"none of .*regression"):
        selftest.metrics()


def test_a_missing_library_is_a_failure_where_the_wheel_brings_one(monkeypatch, without_library):
    monkeypatch.setattr(selftest, "brings_library", lambda: True)
    with pytest.raises(SelfTestError, match=r"no file.*Install the wheel again"):
        selftest.compiled_library()


def test_a_missing_library_is_reported_where_the_wheel_brings_none(monkeypatch, without_library):
    monkeypatch.setattr(selftest, "brings_library", lambda: False)
    assert "in torch" in selftest.compiled_library()


def test_a_library_that_does_not_load_is_a_failure(without_library):
    without_library.write_bytes(b"for another machine")
    with pytest.raises(SelfTestError, match="another machine"):
        selftest.compiled_library()


@pytest.mark.skipif(not WHOLE.exists() or sys.platform != "linux", reason="needs a library in ELF")
@pytest.mark.parametrize("share", [0.02, 0.5, 0.999])
def test_a_library_that_was_cut_short_is_a_failure_and_not_loaded(without_library, share):
    """Loading it would end the process with a bus error."""
    whole = WHOLE.read_bytes()
    without_library.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(SelfTestError, match="ends too early"):
        selftest.compiled_library()
    without_library.write_bytes(whole)
    library.cache_clear()
    assert selftest.compiled_library() == "loaded"


@pytest.mark.skipif(not WHOLE.exists() or sys.platform != "linux", reason="needs a library in ELF")
def test_a_library_without_a_table_of_sections_ends_where_its_segments_end(tmp_path):
    """As `strip` and others leave it."""
    whole = bytearray(WHOLE.read_bytes())
    whole[40:48], whole[60:62] = bytes(8), bytes(2)  # where that table is, and how many entries it has
    file = tmp_path / "library.so"
    file.write_bytes(whole)
    assert not is_cut_short(file)
    file.write_bytes(whole[: len(whole) // 2])
    assert is_cut_short(file)


def test_a_library_that_is_turned_off_is_reported(monkeypatch, fresh_library):
    monkeypatch.setenv("ASSAY_NATIVE", "0")
    assert "turned off" in selftest.compiled_library()


@pytest.mark.parametrize(
    ("tag", "expected"), [("py3-none-manylinux_2_17_x86_64", True), ("py3-none-any", False), (None, False)]
)
def test_the_tag_of_the_wheel_says_whether_it_brings_the_library(monkeypatch, tag, expected):
    class Installed:
        def read_text(self, name):
            return None if tag is None else f"Wheel-Version: 1.0\nTag: {tag}\n"

    monkeypatch.setattr(selftest, "distribution", lambda name: Installed())
    assert selftest.brings_library() is expected


def test_a_meter_that_loses_counts_is_a_failure(monkeypatch):
    monkeypatch.setattr("assay.meter.Meter.merge", lambda self, *others: self)
    with pytest.raises(SelfTestError, match="merged counts"):
        selftest.meter()


def test_extras_are_imported_or_named(monkeypatch):
    class Installed:
        requires = (
            "torch>=2.6",
            *("typer>=0.16; extra == 'cli'", "pandas>=2.2; extra == 'pandas'", "pytest>=8.3; extra == 'test'"),
            *("typer>=0.16; extra == 'all'", "pandas>=2.2; extra == 'all'"),
        )

    monkeypatch.setattr(selftest, "distribution", lambda name: Installed())
    monkeypatch.setattr(selftest, "is_installed", lambda package: package != "pandas")
    assert selftest.extras() == "cli can be imported; not installed: pandas"

    def broken(name):
        raise ImportError(f"{name} is broken")

    monkeypatch.setattr(selftest, "import_module", broken)
    with pytest.raises(ImportError, match="typer is broken"):
        selftest.extras()


def test_of_a_package_the_module_with_its_name_is_imported_or_all_of_them(monkeypatch):
    owners = {
        "duckdb": ["DuckDB"],
        "adbc_driver_duckdb": ["duckdb"],
        "sklearn": ["scikit-learn"],
        "_duckdb": ["duckdb"],
    }
    imported = []
    monkeypatch.setattr(selftest, "packages_distributions", lambda: owners)
    monkeypatch.setattr(selftest, "import_module", imported.append)
    selftest.import_packages({"duckdb", "scikit-learn", "absent"})
    assert sorted(imported) == ["duckdb", "sklearn"]
