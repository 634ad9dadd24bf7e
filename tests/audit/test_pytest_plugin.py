"""The plugin in projects of its own: which tests run where, what is told, and when the run fails."""

from __future__ import annotations

import subprocess
import sys

import pytest

from assay._cache import cache_folder

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.exhaustive  # each test starts pytest

TESTS = """
import pytest, torch

@pytest.mark.devices("cpu", "mps", "cuda:1")
def test_named(device):
    assert torch.ones(2, device=device).device == device

def test_default(device, pretended):
    assert (pretended is None) == (device == torch.device("cpu"))

@pytest.mark.devices("cuda")
@pytest.mark.skip(reason="not today")
def test_skipped(device):
    raise AssertionError

@pytest.mark.parametrize("device", ["cpu", "anything"])
def test_parametrized_by_itself(device):
    assert isinstance(device, str)

class TestOwnFixture:
    @pytest.fixture
    def device(self):
        return "its own"

    def test_own(self, device):
        assert device == "its own"
"""


CACHE = cache_folder()  # now: pytester gives each project a home of its own, and the engine would be compiled there


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    if CACHE is not None:
        monkeypatch.setenv("ASSAY_CACHE", str(CACHE))
    pytester.makeini(
        "[pytest]\naddopts = -p no:cacheprovider -p no:randomly --strict-markers --strict-config "
        "--import-mode=importlib\nfilterwarnings = error\n"
    )
    return pytester


def run(project: pytest.Pytester, *arguments: str, expect: int) -> str:
    result = project.runpytest_subprocess(*arguments)
    shown = result.stdout.str() + result.stderr.str()
    assert result.ret == expect, shown
    return shown


def summary(shown: str) -> list[list[str]]:
    """The lines of the section `devices`."""
    lines = shown.splitlines()
    start = next(at for at, line in enumerate(lines) if line.strip("=") == " devices ")
    section = []
    for line in lines[start + 1 :]:
        if line.startswith("=") or not line.strip():
            break
        section.append(line.split(maxsplit=2))
    return section


def test_a_test_runs_once_on_each_device_and_says_whether_it_is_real(project):
    project.makepyfile(TESTS)
    shown = run(project, "-v", "--devices", "cpu,xpu", expect=0)
    for name in ("named[cpu]", "named[mps-pretend]", "named[cuda:1-pretend]", "default[cpu]", "default[xpu-pretend]"):
        assert f"test_{name} PASSED" in shown
    assert "test_skipped[cuda-pretend] SKIPPED" in shown
    assert summary(shown) == [
        ["cpu", "real", "2 passed"],
        ["cuda", "pretend", "1 skipped"],
        ["cuda:1", "pretend", "1 passed"],
        ["mps", "pretend", "1 passed"],
        ["xpu", "pretend", "1 passed"],
    ]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_a_required_device_on_which_no_test_ran_fails_the_run(project, workers):
    project.makepyfile(TESTS)
    shown = run(project, "--require-devices", "mps,cuda:0,cuda", *workers, expect=1)
    assert ["cuda:0", "was", "required, and no test ran on it"] in summary(shown)  # skipped, and cuda:1 is another one
    assert "mps      was required" not in shown
    assert "cuda     was required" not in shown
    assert "5 passed" not in shown or "failed" not in shown.splitlines()[-1]


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_required_devices_that_ran_do_not(project, workers):
    project.makepyfile(TESTS)
    shown = run(project, "--require-devices", "mps,cuda:1,cpu", *workers, expect=0)
    assert "was required" not in shown


def test_deselected_tests_do_not_count(project):
    project.makepyfile(TESTS)
    shown = run(project, "--require-devices=mps", "-k", "default", expect=1)
    assert "mps      was required, and no test ran on it" in shown
    shown = run(project, "--require-devices=mps", "-k", "nowhere", expect=1)
    assert "mps      was required, and no test ran on it" in shown


def test_settings_stand_in_for_options(project):
    project.makeini(
        "[pytest]\nassay_devices = mps xpu\nassay_require_devices = mps, xpu, cuda:1\nfilterwarnings = error\n"
        "addopts = -p no:cacheprovider"
    )
    project.makepyfile("def test_here(device): assert str(device)")
    shown = run(project, "-v", expect=1)
    assert "test_here[mps-pretend] PASSED" in shown
    assert "test_here[xpu-pretend] PASSED" in shown
    assert [line[0] for line in summary(shown) if "required" in line[2]] == ["cuda:1"]


def test_pretend_devices_can_be_left_out(project):
    project.makepyfile(TESTS)
    shown = run(project, "-v", "-rs", "--real-devices-only", "--require-devices=mps", expect=1)
    assert "this machine has no mps, and --real-devices-only was given" in shown
    assert ["mps", "pretend", "1 skipped"] in summary(shown)


def test_failures_and_errors_are_told_apart_and_a_failed_test_ran(project):
    project.makepyfile(
        """
import pytest

@pytest.fixture
def broken(device):
    raise ValueError

@pytest.mark.devices("mps")
def test_fails(device):
    assert False

@pytest.mark.devices("xpu")
def test_cannot_start(broken):
    pass
"""
    )
    shown = run(project, "--require-devices=mps", expect=1)
    assert summary(shown) == [["mps", "pretend", "1 failed"], ["xpu", "pretend", "1 error"]]


def test_checks_name_the_line_of_the_test(project):
    project.makepyfile(
        """
import pytest, torch

pytestmark = pytest.mark.devices("cpu", "cuda")

def test_waits(device, no_sync):
    x = torch.ones(3, device=device)
    with no_sync():
        total = x.sum()
    with no_sync():
        total.item()

def test_widens(no_float64, device):
    x = torch.ones(3, device=device)
    with no_float64():
        x + x
    with no_float64():
        x.double()

def test_takes_no_device(no_sync, pretended):
    with no_sync():
        torch.ones(3) + 1
    assert pretended is None
"""
    )
    shown = run(project, expect=1)
    failures, _, _ = shown.partition("short test summary")  # which has the whole texts once more where CI is set
    assert failures.count(":10: a value is copied to the CPU") == 2
    assert failures.count(":17: makes float64 of float32") == 2
    assert "4 failed, 1 passed" in shown


@pytest.mark.parametrize(
    ("marked", "arguments", "told"),
    [
        ("", ["--devices=tpu"], "--devices or assay_devices: got 'tpu', expected cpu, cuda, mps"),
        ("", ["--require-devices=cuda:"], "--require-devices or assay_require_devices: got 'cuda:'"),
        ("@pytest.mark.devices('gpu')", [], "the marker of test_it: got 'gpu'"),
    ],
)
def test_mistakes_are_told(project, marked, arguments, told):
    project.makepyfile(f"import pytest\n{marked}\ndef test_it(device): pass")
    result = project.runpytest_subprocess(*arguments)
    assert result.ret != 0
    assert told in result.stdout.str() + result.stderr.str()


def test_a_marked_test_has_to_take_the_device(project):
    project.makepyfile("import pytest\n@pytest.mark.devices('mps')\ndef test_it(): pass")
    assert "test_it is marked with devices but does not take `device`" in run(project, expect=2)


def test_a_project_with_an_option_of_the_same_name_keeps_it(project):
    project.makeconftest("def pytest_addoption(parser): parser.addoption('--devices', default='its own')")
    project.makepyfile(TESTS + "\ndef test_option(pytestconfig): assert pytestconfig.getoption('devices') == 'two'")
    shown = run(project, "-v", "--devices", "two", "--assay-devices=xpu", "--assay-require-devices=cuda", expect=0)
    assert "test_default[xpu-pretend] PASSED" in shown
    assert "test_option PASSED" in shown


def test_collecting_only_requires_nothing(project):
    project.makepyfile(TESTS)
    assert "was required" not in run(project, "--collect-only", "-q", "--require-devices=xpu", expect=0)


def test_loading_the_plugin_imports_no_torch(tmp_path):
    code = """
import sys, pytest

class Look:
    def pytest_configure(self, config):
        names = [getattr(each, "__name__", "") for each in config.pluginmanager.get_plugins()]
        print("loaded", "assay.audit.pytest_plugin" in names, "torch" in sys.modules)

pytest.main(["--collect-only", "-q", "--rootdir=."], plugins=[Look()])
"""
    command = [sys.executable, "-c", code]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout
    assert "loaded True False" in shown


def test_a_device_that_the_build_of_torch_has_itself_is_skipped_where_the_machine_has_none(project):
    project.makeconftest("import torch\ntorch._C._has_cuda = True\n")  # as in builds for CUDA
    project.makepyfile(
        "import pytest\n@pytest.mark.devices('cpu', 'cuda:1')\ndef test_it(device):\n    assert device.type == 'cpu'\n"
    )
    shown = run(project, "-rs", expect=0)
    assert "1 passed, 1 skipped" in shown
    assert "this machine has no cuda:1, and none can be pretended beside real devices or builds for them" in shown
    run(project, "--require-devices=cuda:1", expect=1)


WHOLE = """
import pytest, torch

HERE = torch.backends.mps.is_available()  # when it is collected

@pytest.mark.skipif(not HERE, reason="no device")
def test_own():
    x = torch.ones(2, device="mps")
    with pytest.raises(TypeError, match="float64"):
        x.double()

@pytest.mark.devices("mps", "cuda")
def test_ours(device, pretended):
    assert pretended.type == device.type == "mps"
"""


def test_a_device_is_open_before_a_project_is_collected(project):
    project.makeconftest("import torch\nassert torch.backends.mps.is_available()")
    project.makepyfile(WHOLE)
    result = project.runpytest_subprocess("--assay-pretend", "mps", "-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["assay: mps:0 is pretended*", "*this machine has no cuda*"])


def test_a_device_that_cannot_be_pretended_is_a_usage_error(project):
    project.makepyfile("def test(): pass")
    result = project.runpytest_subprocess("--assay-pretend", "tpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--assay-pretend tpu: device: got 'tpu', expected one of cuda, mps, xpu*"])
