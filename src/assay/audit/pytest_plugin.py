"""The pytest plugin: tests that run once a device, on a pretend one where the machine has none, and say which it was.

Loaded by pytest in every project where assay is installed, so it imports nothing but pytest until a test asks for a
device.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import torch

    from assay.pretend.session import PretendDevice


REAL, PRETEND, ABSENT = "real", "pretend", "absent"
_PROPERTY = "assay_device"  # of a test's report, which pytest-xdist carries to the process that sums up
_OPENED: pytest.StashKey[PretendDevice] = pytest.StashKey()
_KEPT_OPEN: pytest.StashKey[PretendDevice] = pytest.StashKey()  # by --assay-pretend


@dataclass(frozen=True)
class TestPlace:
    """A device on which a test is to run: its name, and whether that is the real one, a pretend one, or none."""

    name: str
    how: str

    def __str__(self) -> str:
        return self.name if self.how == REAL else f"{self.name}-{self.how}"


class Summary:
    """Counts the tests of each device, reports them at the end, and fails the run if a required device had none."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._outcomes: dict[str, Counter[str]] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the test; under pytest-xdist, where the workers' reports arrive."""
        place = next((str(value) for name, value in report.user_properties if name == _PROPERTY), None)
        if place is not None and (report.when == "call" or report.outcome != "passed"):
            outcome = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
            self._outcomes.setdefault(place, Counter())[outcome] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail the run if a required device was not exercised."""
        fine = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if fine and self._missing():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say on which devices tests ran, whether they were real, and how many."""
        missing = self._missing()
        if self._outcomes or missing:
            terminalreporter.section("devices")
        for place, counts in sorted(self._outcomes.items()):
            name, how = place.split(" ")
            text = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
            terminalreporter.line(f"{name:<8} {how:<8} {text}")
        for name in missing:
            terminalreporter.line(f"{name:<8} was required, and no test ran on it", red=True, bold=True)

    def _missing(self) -> list[str]:
        if self._config.option.collectonly:
            return []
        return [name for name in _device_names(self._config, "require-devices") if not self._exercised(name)]

    def _exercised(self, device: str) -> bool:
        """Whether a test ran on a device to its end, or to a failure of its own: a skipped one did not."""
        return any(
            _meets(place.partition(" ")[0], device) and (counts["passed"] or counts["failed"])
            for place, counts in self._outcomes.items()
        )


_OPTIONS: dict[str, dict[str, Any]] = {
    "devices": {
        "metavar": "NAMES",
        "help": "Devices for the tests that take `device` and name none, such as cpu,mps,cuda:1. Pretend ones where "
        "this machine has none.",
    },
    "require-devices": {
        "metavar": "NAMES",
        "help": "Fail the run if no test ran on one of these devices. A skipped test did not run.",
    },
    "pretend": {
        "metavar": "NAME",
        "help": "Open this pretend device, such as mps, before conftest files are loaded and tests are collected, and "
        "keep it open for the whole run: the project's own tests find a device.",
    },
    "device": {
        "metavar": "NAME",
        "help": "Check this device: pytest --pyargs assay.conformance --device mps. By default the CPU.",
    },
    "real-devices-only": {"action": "store_true", "default": False, "help": "Skip where a pretend one would be used."},
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options, under names that no one else has, and the settings."""
    for name, about in _OPTIONS.items():
        parser.getgroup("assay", "devices (assay)").addoption(f"--assay-{name}", dest=_dest(name), **about)
    parser.addini("assay_devices", "The default of --assay-devices.", type="args", default=["cpu"])
    parser.addini("assay_require_devices", "The default of --assay-require-devices.", type="args", default=[])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config, parser: pytest.Parser) -> Iterator[None]:
    """Open the device of ``--assay-pretend``, as projects ask for devices when they are imported.

    Then add the short names of the options, unless the project has options of these names: it goes first.
    """
    if (name := getattr(early_config.known_args_namespace, _dest("pretend"), None)) is not None:
        _open_for_the_run(early_config, name)
    result = yield
    for name, about in _OPTIONS.items():
        if _is_free(parser, f"--{name}") and (name != "device" or _checks_conformance(early_config)):
            parser.getgroup("assay").addoption(f"--{name}", dest=_dest(name), **about)
    return result


def _open_for_the_run(config: pytest.Config, name: str) -> None:
    """Open a pretend device until pytest ends."""
    from assay.errors import AssayError
    from assay.pretend import pretend

    opened = ExitStack()
    try:
        device = opened.enter_context(pretend(name))
    except AssayError as error:
        raise pytest.UsageError(f"--assay-pretend {name}: {error}") from None
    config.stash[_KEPT_OPEN] = device
    config.add_cleanup(opened.close)


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say that the device of this run is pretended."""
    device = config.stash.get(_KEPT_OPEN, None)
    return f"assay: {device.device} is pretended ({device.engine} engine)" if device else None


def _checks_conformance(config: pytest.Config) -> bool:
    """Whether this run checks a device: elsewhere the name of the option is too common to be taken."""
    return any("assay.conformance" in str(each) for each in config.known_args_namespace.file_or_dir)


def _is_free(parser: pytest.Parser, option: str) -> bool:
    try:
        return option in parser.parse_known_and_unknown_args([option])[1]
    except pytest.UsageError:  # known, and it wants a value
        return False


def _dest(name: str) -> str:
    return f"assay_{name.replace('-', '_')}"


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker and check the names of devices."""
    config.addinivalue_line("markers", "devices(*names): run the test, which takes `device`, once on each of them.")
    for option in ("devices", "require-devices"):
        _checked(_device_names(config, option), f"--{option} or {_dest(option)}")
    if not hasattr(config, "workerinput"):  # pytest-xdist: the workers' reports go to the process that started them
        config.pluginmanager.register(Summary(config), "assay-devices-summary")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes our fixture `device` once on each device."""
    marker = metafunc.definition.get_closest_marker("devices")
    if not _takes_our_device(metafunc):
        own = any(mark.name == "devices" for mark in metafunc.definition.own_markers)  # and not of its class or module
        if own and "device" not in metafunc.fixturenames:
            pytest.fail(f"{metafunc.definition.name} is marked with devices but does not take `device`", pytrace=False)
        return
    named = _checked(marker.args, f"the marker of {metafunc.definition.name}") if marker else None
    places = [_place(name) for name in named or _device_names(metafunc.config, "devices")]
    metafunc.parametrize("device", places, ids=str, indirect=True)


def _takes_our_device(metafunc: pytest.Metafunc) -> bool:
    """Whether `device` is this file's fixture: a project may have one of its own, which is nothing of ours."""
    fixtures = metafunc._arg2fixturedefs.get("device", ())
    return bool(fixtures) and fixtures[-1].func.__module__ == __name__ and "device" not in _parameters(metafunc)


def _parameters(metafunc: pytest.Metafunc) -> set[str]:
    """The arguments that the test is parametrized with by itself."""
    names: set[str] = set()
    for mark in metafunc.definition.iter_markers("parametrize"):
        argnames = mark.args[0] if mark.args else mark.kwargs["argnames"]
        names.update(re.split(r"\s*,\s*", argnames.strip()) if isinstance(argnames, str) else argnames)
    return names


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Iterator[torch.device]:
    """The device to test on: one of ``@pytest.mark.devices(...)``, of ``--devices``, or the CPU.

    Where this machine has no such device, the test runs inside :func:`assay.pretend.pretend`, and its name ends
    in ``-pretend``.
    """
    import torch

    place = getattr(request, "param", None) or _place("cpu")
    if not isinstance(place, TestPlace):  # parametrized by the test itself, with indirect=True
        place = _place(_checked([place], f"the parameter of {request.node.name}")[0])
    if why_not := _why_not(place, request.config.getoption(_dest("real-devices-only"))):
        pytest.skip(why_not)
    if place.how == REAL:
        yield _indexed(torch.device(place.name))
        return
    from assay.pretend import pretend

    if kept := request.config.stash.get(_KEPT_OPEN, None):
        request.node.stash[_OPENED] = kept
        yield _indexed(torch.device(place.name))
        return
    with pretend(place.name) as pretended:
        request.node.stash[_OPENED] = pretended
        yield pretended.device


@pytest.fixture
def pretended(request: pytest.FixtureRequest) -> PretendDevice | None:
    """The pretend device on which the test runs, with its events; ``None`` on a real one."""
    if "device" in request.fixturenames:
        request.getfixturevalue("device")  # so that it is open first
    opened: PretendDevice | None = request.node.stash.get(_OPENED, None)
    return opened


@pytest.fixture
def no_sync() -> Callable[[], AbstractContextManager[None]]:
    """``with no_sync():`` a block that must not synchronize with the device; see :func:`assay.audit.no_sync`."""
    from assay.audit.block_checks import no_sync as check

    return check


@pytest.fixture
def no_float64() -> Callable[[], AbstractContextManager[None]]:
    """``with no_float64():`` a block in which no float64 may appear; see :func:`assay.audit.no_float64`."""
    from assay.audit.block_checks import no_float64 as check

    return check


def pytest_itemcollected(item: pytest.Item) -> None:
    """Write on each test which device it is for."""
    callspec = getattr(item, "callspec", None)
    place = callspec.params.get("device") if callspec else None
    if isinstance(place, TestPlace):
        item.user_properties.append((_PROPERTY, f"{place.name} {place.how}"))


def _device_names(config: pytest.Config, option: str) -> list[str]:
    """The devices of an option, or of the setting that is its default."""
    value = config.getoption(_dest(option))
    names = value if value is not None else ",".join(config.getini(_dest(option)))
    return [name for name in re.split(r"[\s,]+", names) if name]


def _checked(names: Iterable[str], where: str) -> list[str]:
    from assay.devices.kinds import DEVICES, HOST, PATTERN

    for name in names:
        if not re.fullmatch(rf"{HOST}|({PATTERN})(:\d+)?", str(name)):
            raise pytest.UsageError(f"{where}: got {name!r}, expected one of {', '.join(DEVICES)}, or such as cuda:1")
    return [str(name) for name in names]


def _meets(name: str, asked: str) -> bool:
    """Whether tests on a device count for the one asked for: ``cuda`` asks for any, and is itself ``cuda:0``."""
    return name == asked or name.partition(":")[0] == asked or f"{name}:0" == asked


def _place(name: str) -> TestPlace:
    """The real device where this machine has it, else a pretend one, which cannot stand beside real ones.

    Nor can one be pretended that this build of torch has itself, though the machine has none: builds for CUDA do.
    """
    if name == "cpu":
        return TestPlace(name, REAL)
    import torch

    from assay.devices import available
    from assay.devices.pretend_state import pretended_kind
    from assay.pretend.torch_patches import real_devices

    here = available()
    if (kept := pretended_kind()) and kept != name.partition(":")[0]:
        return TestPlace(name, ABSENT)
    if kept:
        return TestPlace(name, PRETEND if _indexed(torch.device(name)) in here else ABSENT)
    if _indexed(torch.device(name)) in here:
        return TestPlace(name, REAL)
    kinds = {str(device).partition(":")[0] for device in here} | set(real_devices())
    return TestPlace(name, ABSENT if name.partition(":")[0] in kinds else PRETEND)


def _indexed(device: torch.device) -> torch.device:
    """The device as tensors name it: with an index, except for the CPU."""
    import torch

    return device if str(device) == "cpu" else torch.device(str(device).partition(":")[0], device.index or 0)


def _why_not(place: TestPlace, real_only: bool) -> str:
    """Why a test does not run on a device; empty if it does."""
    if place.how == ABSENT:
        return f"this machine has no {place.name}, and none can be pretended beside real devices or builds for them"
    if place.how == PRETEND and real_only:
        return f"this machine has no {place.name}, and --real-devices-only was given"
    return ""
