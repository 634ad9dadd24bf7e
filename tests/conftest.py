"""What every test run has in common: few threads, reproducible examples, counted operators."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

from assay.pretend.errors import PretendError
from assay.pretend.torch_patches import real_devices
from counting import Counts, counted
from repeatable import seed_for_test
from thinning import EXAMPLES, Selection, thin_out

if not torch.cuda.is_available():  # kernels in Triton run in its interpreter, which is chosen when Triton is imported
    os.environ.setdefault("TRITON_INTERPRET", "1")

CONFORMANCE = Path(__file__).parents[1] / "src/assay/conformance/test_device.py"

torch.set_num_threads(1)  # workers of pytest-xdist share the cores
gc.disable()  # until all cases are made, which are there until the end

settings.register_profile("assay", deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("assay"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "assay")


def pytest_configure(config: pytest.Config) -> None:
    Selection.is_thin = "not exhaustive" in config.option.markexpr
    if Selection.is_thin:
        settings.register_profile("thin", settings.default, max_examples=EXAMPLES)
        settings.load_profile("thin")


@pytest.hookimpl(trylast=True)  # all cases of the test are known
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    thin_out(metafunc)


@pytest.hookimpl(tryfirst=True)  # before -m selects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path == CONFORMANCE:  # tests/conformance runs a part of these checks
            item.add_marker("exhaustive")


def pytest_collection_finish() -> None:
    """What collects garbage, as some tests do, need not look at all cases each time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)  # 700 is for programs that run for long
    gc.enable()


@contextmanager
def skipped_beside_a_real_device() -> Iterator[None]:
    """A test that pretends a device which this build of torch has itself, as builds for CUDA do, is skipped."""
    try:
        yield
    except PretendError as error:
        if not real_devices() or "got a build of torch" not in str(error):
            raise
        pytest.skip(str(error).partition(", expected")[0])


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Iterator[None]:
    with skipped_beside_a_real_device():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    with skipped_beside_a_real_device():
        return (yield)


@pytest.hookimpl(tryfirst=True)  # before fixtures draw
def pytest_runtest_setup(item: pytest.Item) -> None:
    if isinstance(item, pytest.Function):
        seed_for_test(item.module)


@pytest.fixture(autouse=True)
def no_accelerate_state_is_left():
    """Accelerate keeps the first device it saw, for good: of a Trainer on a pretend device, too."""
    yield
    if (state := sys.modules.get("accelerate.state")) is not None:
        state.AcceleratorState._reset_state(reset_partial_state=True)


@pytest.fixture
def count_ops() -> type[counted]:
    """``with count_ops() as counts:`` counts the ATen calls and the host synchronisations of the block."""
    return counted


__all__ = ["Counts", "counted"]
