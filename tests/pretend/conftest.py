"""One pretend device for each kind and each engine, and what the Python engine refuses.

A behaviour takes one of the fixtures ``there`` (every kind), ``cuda``, ``mps``, ``xpu`` or ``indexed`` (the kinds of
which there may be several) and is run once for each engine.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator

import pytest

from assay.pretend import pretend
from assay.pretend.errors import PretendError
from assay.pretend.native_engine.build import why_not
from assay.pretend.session import PretendDevice
from assay.pretend.torch_patches import real_devices
from thinning import one_of_each

ENGINES = ("native", "python")
REFUSED_BY_PYTHON_ENGINE: dict[str, tuple[type[Exception], str]] = {
    "test_transforms_of_functions": (PretendError, r"torch\.func\.grad and its kin.*pretended without a compiler"),
    "test_compiled_functions": (PretendError, r"torch\.compile.*pretended without a compiler"),
    "test_compiled_functions_whose_graph_breaks_where_the_host_waits": (
        PretendError,
        r"torch\.compile.*pretended without a compiler",
    ),
    "test_compiled_functions_refuse_two_devices": (PretendError, r"torch\.compile.*pretended without a compiler"),
    # Torch's own C code refuses these before the Python engine could be asked.
    "test_a_factory_pins_memory": (
        RuntimeError,
        "no pinned memory allocator is|provide pin_memory allocator|Found no NVIDIA driver",
    ),
    "test_a_number_is_an_index_of_the_accelerator": (
        RuntimeError,
        "Cannot access accelerator device when none is available",
    ),
}
"""Behaviours that the Python engine refuses: the test, and the error that it must raise there."""

COUNTS = {"cuda": 2, "mps": 1, "xpu": 1}


def opened(*kinds: str):
    """A fixture that opens each of these kinds, with each engine."""

    @pytest.fixture(params=[f"{kind}-{engine}" for kind in kinds for engine in ENGINES])
    def device(request: pytest.FixtureRequest) -> Iterator[PretendDevice]:
        kind, engine = request.param.split("-")
        need(engine)
        if kind in real_devices():
            pytest.skip(f"this build of torch has {kind} itself")
        with pretend(kind, count=COUNTS[kind], engine=engine) as machine:
            yield machine

    return device


there = opened("cuda", "mps", "xpu")
cuda = opened("cuda")
mps = opened("mps")
xpu = opened("xpu")
indexed = opened("cuda", "xpu")


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    """The name of each engine, for behaviours that open a device themselves."""
    need(request.param)
    return request.param


def need(engine: str) -> None:
    """Skip where the native engine cannot be had; with ASSAY_REQUIRE_ENGINE=1 that is a failure."""
    reason = why_not() if engine == "native" else ""
    if reason and os.environ.get("ASSAY_REQUIRE_ENGINE") == "1":
        pytest.fail(f"ASSAY_REQUIRE_ENGINE=1, but {reason}")
    if reason:
        pytest.skip(reason)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The Python engine takes long to open: `make test` runs a behaviour on it for one kind of device."""
    if {"there", "indexed"} & {*metafunc.fixturenames}:
        metafunc.definition.add_marker(one_of_each(on_one_kind_in_python))


def on_one_kind_in_python(**params: object) -> Hashable:
    opened = str(params.pop("there", None) or params.pop("indexed"))
    return ("python" if opened.endswith("python") else opened), *map(str, params.items())


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """A behaviour that the Python engine refuses must raise its error there; it is never left out in silence."""
    name, _, parameters = pyfuncitem.name.partition("[")
    refusal = REFUSED_BY_PYTHON_ENGINE.get(name) if "python" in parameters else None
    if refusal is None:
        return (yield)
    error, text = refusal
    with pytest.raises(error, match=text):
        yield
    return True
