"""What assay does on a device, and why: every choice is a value that can be printed before anything runs."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cache
from importlib import import_module
from typing import Generic, Literal, TypeVar

import torch

from assay.devices.capabilities import Fact, device_type, supports
from assay.devices.kinds import KINDS
from assay.devices.pretend_state import pretended_kind
from assay.devices.selftest import SelfTest, self_test
from assay.devices.tried_releases import report_untried
from assay.errors import ConfigError, describe

T = TypeVar("T")

CACHE_FRIENDLY = 131_072  # elements: the int64 temporaries of a chunk stay in a core's L2 cache
FEW_LAUNCHES = 2**24  # elements: bounds the temporaries at 128 MiB each and keeps the number of launches small
WITHOUT_VALUES = ("meta",)
OLDEST_TRITON = (3, 4)  # the kernels do not compile with older ones


@dataclass(frozen=True)
class PolicyDecision(Generic[T]):
    """What to do, and why."""

    value: T
    reason: str


@dataclass(frozen=True)
class Policy:
    """What assay does on one device.

    Attributes:
        device: the device.
        accumulate: the dtype of everything that is counted.
        tally_on: where batches of this device are counted; the CPU where int64 scatter cannot be trusted.
        read_on: where values are read from counts.
        widest_float: the widest float dtype that tensors of this device may have.
        chunk_elements: how many elements are counted in one go.
        non_blocking: whether a copy from pinned host memory may be asynchronous.
        compiled: whether compiled code of the CPU may read its tensors.
        triton: whether kernels in Triton may count its batches, if they pass their self-test.
    """

    device: torch.device
    accumulate: PolicyDecision[torch.dtype]
    tally_on: PolicyDecision[torch.device]
    read_on: PolicyDecision[torch.device]
    widest_float: PolicyDecision[torch.dtype]
    chunk_elements: PolicyDecision[int]
    non_blocking: PolicyDecision[bool]
    compiled: PolicyDecision[bool]
    triton: PolicyDecision[bool]

    @property
    def decisions(self) -> dict[str, PolicyDecision[object]]:
        """The decisions by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "device"}

    def __str__(self) -> str:
        width = max(map(len, self.decisions))
        lines = (f"  {name:{width}} = {decision.value}: {decision.reason}" for name, decision in self.decisions.items())
        return "\n".join([f"policy on {self.device}", *lines])


def policy(device: str | torch.device) -> Policy:
    """Decide what to do on a device.

    Cached for each device, and once more where it is pretended. Where the facts leave open whether int64 scatter is
    exact, the first call runs the self-test on the device, which waits for it once.

    Args:
        device: any device; an unknown kind gets the careful choices.

    Returns:
        The decisions with their reasons; ``print`` shows them.

    Raises:
        ConfigError: torch knows no such device here.

    Example:
        >>> policy("cpu").accumulate.value
        torch.int64
        >>> policy("cpu").chunk_elements.value
        131072
    """
    return _policy(as_device(device), pretended_kind())


def as_device(device: str | torch.device) -> torch.device:
    """A device by its name.

    Raises:
        ConfigError: torch knows no such device here.
    """
    try:
        return torch.device(device)
    except RuntimeError as error:
        kind = KINDS.get(device_type(device))
        do = f"Import {kind.adapter}, which brings it to torch" if kind else "Check the spelling of the device"
        raise ConfigError(describe("device", repr(device), "a device such as cpu or cuda:1", do)) from error


@cache
def _policy(device: torch.device, pretended: str) -> Policy:
    host = torch.device("cpu")
    return Policy(
        device=device,
        accumulate=PolicyDecision(torch.int64, "integer sums do not depend on the order, and every device has int64"),
        tally_on=_tally_on(device),
        read_on=PolicyDecision(host, "the CPU has float64 and exact integers on every machine"),
        widest_float=_widest_float(device),
        chunk_elements=_chunk_elements(device),
        non_blocking=_non_blocking(device),
        compiled=_compiled(device),
        triton=_triton(device),
    )


def integer_product(device: torch.device) -> Literal["int8", "float32", "float64"]:
    """In which dtype a device multiplies matrices of integers fastest; unlike :func:`policy`, it runs no self-test.

    CUDA and XPU have `torch._int_mm`. So has the CPU, but products of float64, which take fewer parts of each number,
    are as fast there even with the instructions of VNNI (torch 2.13, AVX512).
    """
    if device.type == "cpu":
        return "float64"
    kind = KINDS.get(device.type)
    return "int8" if kind is not None and kind.int8_products else "float32"


def available() -> list[torch.device]:
    """The devices of this machine: the CPU first, then every accelerator that torch can use."""
    report_untried()
    devices = [torch.device("cpu")]
    if torch.accelerator.is_available():  # without one, `current_accelerator` of torch 2.6 raises
        accelerator = torch.accelerator.current_accelerator()
        assert accelerator is not None
        devices += [torch.device(accelerator.type, index) for index in range(torch.accelerator.device_count())]
    return devices


def default_device() -> torch.device:
    """The first accelerator of this machine, or the CPU."""
    return next((device for device in available() if device.type != "cpu"), torch.device("cpu"))


def chunk_elements(device: torch.device) -> int:
    """How many elements to work on in one go there; unlike :func:`policy`, it runs no self-test."""
    return _chunk_elements(device).value


def reads_compiled(device: str | torch.device) -> bool:
    """Whether compiled code of the CPU may read a device's tensors; unlike :func:`policy`, it runs no self-test."""
    return device_type(device) == "cpu"


def product_dtype(device: torch.device, dtype: torch.dtype) -> torch.dtype:
    """The dtype in which to multiply matrices of a dtype there: never a narrower one.

    The CPU's products of float16 are three to four times slower than those of float32 (torch 2.13, AVX512).
    """
    return torch.float32 if dtype == torch.float16 and device.type == "cpu" else dtype


def can_hold(device: str | torch.device, dtype: torch.dtype) -> bool:
    """Whether a tensor of this dtype can exist on this device, which need not be here."""
    if dtype in (torch.float64, torch.complex128):
        return _widest_float(device).value == torch.float64
    return True


def _tally_on(device: torch.device) -> PolicyDecision[torch.device]:
    if device.type in WITHOUT_VALUES:
        return PolicyDecision(device, "it holds shapes and no values, so there is nothing to count")
    fact = supports(device, "int64_scatter")
    if fact.supported is True:
        return PolicyDecision(device, f"int64 scatter is exact{_cited(fact)}")
    test = self_test(device)
    if test.passed:
        reason = f"int64 scatter passed the self-test here; the facts say: {fact.why}{_cited(fact)}"
        return PolicyDecision(device, reason)
    return PolicyDecision(torch.device("cpu"), f"{_what_failed(test)}, so batches are counted on the CPU")


def _what_failed(test: SelfTest) -> str:
    if len(test.failures) == len(test.outcomes):
        return f"nothing runs on {test.device} here ({test.failures[0].detail})"
    return f"the self-test failed on {test.device} ({', '.join(outcome.name for outcome in test.failures)})"


def _widest_float(device: str | torch.device) -> PolicyDecision[torch.dtype]:
    fact = supports(device, "float64")
    if fact.supported is True or device_type(device) in WITHOUT_VALUES:
        return PolicyDecision(torch.float64, "float64 inputs stay as they are; nothing is widened to it while counting")
    if fact.supported == "partial" and _has_fp64(device):
        return PolicyDecision(torch.float64, "this card says that it has float64")
    return PolicyDecision(torch.float32, f"{fact.why}{_cited(fact)}")


def _has_fp64(device: str | torch.device) -> bool:
    """Ask an Intel card; without one, or without an answer, no."""
    try:
        return bool(torch.xpu.get_device_properties(device).has_fp64)
    except (AssertionError, AttributeError, RuntimeError):
        return False


def _chunk_elements(device: torch.device) -> PolicyDecision[int]:
    if device.type == "cpu":
        return PolicyDecision(CACHE_FRIENDLY, "the temporaries of a chunk stay in the cache of one core")
    return PolicyDecision(FEW_LAUNCHES, "few launches, and temporaries of at most 128 MiB")


def _non_blocking(device: torch.device) -> PolicyDecision[bool]:
    fact = supports(device, "non_blocking_copies")
    allowed = device.type != "cpu" and fact.supported in (True, "partial")
    return PolicyDecision(allowed, f"{fact.why}{_cited(fact)}")


def _compiled(device: torch.device) -> PolicyDecision[bool]:
    if reads_compiled(device):
        return PolicyDecision(True, "its tensors are in host memory, where compiled code can sum them, if there is any")
    return PolicyDecision(False, "its tensors are not in host memory, so torch's operators sum them")


def _triton(device: torch.device) -> PolicyDecision[bool]:
    """Kernels are for NVIDIA GPUs that are there: pretend devices exist only in builds of torch without CUDA."""
    wish = os.environ.get("ASSAY_TRITON", "")
    if wish == "interpreter" and device.type == "cpu":
        return PolicyDecision(True, "ASSAY_TRITON=interpreter runs the kernels on the CPU, which is slow")
    if device.type != "cuda" or torch.version.cuda is None:
        return PolicyDecision(False, "the kernels in Triton are for NVIDIA GPUs")
    if wish == "0":
        return PolicyDecision(False, "ASSAY_TRITON=0 turns the kernels off, so torch's operators count")
    release = _triton_release()
    if release < OLDEST_TRITON:
        got = "triton {}.{} is too old".format(*release) if any(release) else "triton is not installed"
        return PolicyDecision(False, f'{got} (pip install "assay[cuda]"), so torch\'s operators count')
    return PolicyDecision(True, "one launch of a kernel in Triton takes the place of dozens of operators")


def _triton_release() -> tuple[int, int]:
    """The first two numbers of Triton's version, or zeros without it."""
    try:
        major, minor, *_ = import_module("triton").__version__.split(".")
    except ImportError:
        return 0, 0
    return int(major), int(minor)


def _cited(fact: Fact) -> str:
    return f" [{fact.source}]" if fact.source else ""
