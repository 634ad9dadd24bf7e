"""All checks of a device: one list, which the command line and pytest both run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import torch

from assay.conformance.deterministic import DETERMINISTIC, Question
from assay.conformance.dtypes import DTYPES
from assay.conformance.fixed_inputs import square
from assay.conformance.metric_cases import (
    MetricCase,
    MetricValue,
    broken_law,
    differences,
    distinct_tallies,
    metric_cases,
    value_on,
)
from assay.conformance.mixed_operands import FAMILIES, NUMBERS, Two
from assay.conformance.operator_values import OPERATOR_VALUES, OperatorCase, error_in_ulps, operator_values
from assay.conformance.operators import OPERATORS
from assay.conformance.outcomes import CheckKind, CheckOutcome, Result, expectations
from assay.conformance.waits import WAITS
from assay.devices.capabilities import device_type
from assay.devices.observed_waits import observed_waits, tells_waits
from assay.devices.policies import policy
from assay.devices.pretend_state import pretended_kind
from assay.devices.selftest import OPERATIONS, SelfTestOutcome, run_operation
from assay.pretend import PretendError, current
from assay.tally.triton_check import check_kernels

Found: TypeAlias = tuple[Result, str, str]
"""The result of a check, what the device did, and what was expected."""
RUNS = "runs"
TRITON = "integers: kernels in Triton"
"""A check of builds of torch for CUDA alone."""
LENGTH = 300  # characters of an error that are kept


@dataclass(frozen=True)
class ConformanceCheck:
    """One check.

    Attributes:
        kind: one of `assay.conformance.outcomes.KINDS`.
        name: what is checked.
        run: runs it on a device.
    """

    kind: CheckKind
    name: str
    run: Callable[[str], Found]

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"


def checks_for(device: str) -> list[ConformanceCheck]:
    """All checks of a device, in the order of their kinds."""
    return [*_behaviours(device), *integer_checks(), *_values(), *_laws(), *metric_checks()]


def outcome_of(check: ConformanceCheck, device: str) -> CheckOutcome:
    """Run a check on a device; what raises differs, and what a pretended device refuses to pretend is not seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result, got, expected = check.run(device)
        except (PretendError, ImportError) as error:
            result, got, expected = "not seen", described(error), ""
        except Exception as error:
            result, got, expected = "differs", described(error), "no error"
    return CheckOutcome(check.kind, check.name, result, got, expected)


def described(error: BaseException) -> str:
    """The type of an error with the first line of its text."""
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}"[:LENGTH] if first else type(error).__name__


def questions() -> dict[CheckKind, dict[str, Question]]:
    """What is asked of a device, by the kind of check."""
    asked: dict[str, Question] = dict(OPERATORS)
    for name, two in FAMILIES.items():
        asked[f"{name}: device, CPU"] = _mixed(two, square, _on_host)
        asked[f"{name}: CPU, device"] = _mixed(two, _on_host, square)
    for name, two in NUMBERS.items():
        asked[f"{name}: a number of the CPU"] = _mixed(two, square, _number_on_host)
        asked[f"{name}: a number of the device"] = _mixed(two, _on_host, _number)
    asked |= {f"deterministic {name}": question for name, question in DETERMINISTIC.items()}
    return {"operators": asked, "dtypes": DTYPES, "waits": {name: partial(waits, name) for name in WAITS}}


def _mixed(two: Two, first: Question, second: Question) -> Question:
    return lambda d: two(first(d), second(d))


def _on_host(d: str) -> torch.Tensor:
    return square("cpu")


def _number(d: str) -> torch.Tensor:
    return torch.tensor(1.0, device="cpu").to(d)


def _number_on_host(d: str) -> torch.Tensor:
    return torch.tensor(1.0, device="cpu")


def answer(question: Question, device: str) -> str:
    """What a device answers: `RUNS`, what the question gives as a string, or the error that was raised."""
    try:
        value = question(device)
    except PretendError:
        raise
    except Exception as error:
        return described(error)
    return value if isinstance(value, str) else RUNS


def waits(name: str, device: str) -> str:
    """Whether a call synchronizes with the device."""
    prepare = WAITS[name]
    prepare(device)()  # the first call may load a library
    run = prepare(device)
    with _watched(device) as count:
        run()
        return "waits" if count() else "does not wait"


def _watched(device: str) -> AbstractContextManager[Callable[[], int]]:
    return _watched_events() if pretended_kind() == device_type(device) else observed_waits(device)


@contextmanager
def _watched_events() -> Iterator[Callable[[], int]]:
    opened = current()
    assert opened is not None
    before = len(opened.syncs)
    yield lambda: len(opened.syncs) - before


def _behaviours(device: str) -> Iterator[ConformanceCheck]:
    expected = expectations().answers(device)
    for kind, asked in questions().items():
        for name, question in asked.items():
            if f"{kind}: {name}" in expected:
                wanted = expected[f"{kind}: {name}"]
                yield ConformanceCheck(kind, name, partial(_behaviour, kind, question, wanted))


def _behaviour(kind: CheckKind, question: Question, expected: str, device: str) -> Found:
    if kind == "waits" and not (pretended_kind() == device_type(device) or tells_waits(device)):
        return "not seen", "torch does not tell where the program synchronizes with this device", ""
    got = answer(question, device)
    return ("holds", "", "") if got.partition(":")[0] == expected else ("differs", got, expected)


def integer_checks() -> Iterator[ConformanceCheck]:
    """The checks of the integer operators that counts rest on."""
    for name in OPERATIONS:
        yield ConformanceCheck("integers", name, partial(_operation, name))
    if torch.version.cuda is not None:
        yield ConformanceCheck("integers", TRITON.partition(": ")[2], _kernels)


def _operation(name: str, device: str) -> Found:
    return _of_self_test((run_operation(name, torch.device(device)),))


def _kernels(device: str) -> Found:
    allowed = policy(device).triton
    if not allowed.value:
        return "not seen", allowed.reason, ""
    return _of_self_test(check_kernels(torch.device(device)).outcomes)


def _of_self_test(outcomes: tuple[SelfTestOutcome, ...]) -> Found:
    failed = "; ".join(f"{each.name}: {each.detail}" for each in outcomes if not each.passed)
    return ("differs", failed[:LENGTH], "the same integers as on the CPU") if failed else ("holds", "", "")


def _values() -> Iterator[ConformanceCheck]:
    for name, case in OPERATOR_VALUES.items():
        yield ConformanceCheck("values", name, partial(_value, case, expectations().values.get(name, ())))


def _value(case: OperatorCase, expected: tuple[float, ...], device: str) -> Found:
    error = error_in_ulps(case, operator_values(case, device), expected)
    got = f"{error:.3g} units in the last place"
    if error <= case.ulps:
        return "holds", got, ""
    return "differs", got, f"at most {case.ulps:g} ({case.source})"


def _laws() -> Iterator[ConformanceCheck]:
    for name, case in distinct_tallies(metric_cases()).items():
        yield ConformanceCheck("laws", name, partial(_law, case))


def _law(case: MetricCase, device: str) -> Found:
    broken = broken_law(case, device)
    return ("differs", broken[:LENGTH], "counts that satisfy their laws") if broken else ("holds", "", "")


def metric_checks() -> Iterator[ConformanceCheck]:
    """The checks of the values of metrics on fixed samples: first those that are compared to the bit."""
    cases = {str(case): case for case in metric_cases()}
    for is_rounded in (False, True):
        kind: CheckKind = "metrics of rounded terms" if is_rounded else "metrics"
        for name, expected in expectations().metrics.items():
            if expected.is_rounded == is_rounded:
                yield ConformanceCheck(kind, name, partial(_metric, cases.get(name), expected))


def _metric(case: MetricCase | None, expected: MetricValue, device: str) -> Found:
    if case is None:
        return "not seen", 'it needs a package that is not installed: pip install "assay[text]"', ""
    got = value_on(case, device)
    if got.samples != expected.samples:
        return "not seen", f"torch {torch.__version__} draws other samples than {expectations().torch}", ""
    if wrong := differences(got, expected, expected.is_rounded):
        return "differs", wrong[:LENGTH], "within its rounding" if expected.is_rounded else "the same bits"
    same_bits = not expected.is_rounded or not differences(got, expected, False)
    return "holds", "" if same_bits else "within its rounding", ""
