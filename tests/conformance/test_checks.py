"""The checks of a device: they hold on the CPU and on pretended devices, and each kind fails on a faulty one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import torch
from benchmarks import device_check
from benchmarks.proof.faults import KINDS as FAULTS
from benchmarks.proof.faults import FaultyOperator, Kind

from assay.conformance import metric_cases as cases_module
from assay.conformance.checks import checks_for, outcome_of
from assay.conformance.metric_cases import ABSOLUTE, RELATIVE, differences, metric_cases, value_on
from assay.conformance.operator_values import OPERATOR_VALUES
from assay.conformance.outcomes import KINDS, expectations
from assay.devices.kinds import KINDS as KINDS_OF_DEVICE
from assay.devices.kinds import PRETENDED
from assay.devices.selftest import OPERATIONS
from assay.errors import MissingDependencyError
from assay.metrics.samples import examples
from assay.pretend import pretend
from assay.pretend.torch_patches import real_devices
from thinning import Selection, one_of_each

FEW = 23  # make test runs one check in so many

needs_pretended = pytest.mark.skipif(bool(real_devices()), reason="this build of torch has a device itself")


def some(checks: list[Any]) -> list[Any]:
    return checks[::FEW] if Selection.is_thin else checks


def differing(device: str, kind: str = "", names: tuple[str, ...] = ()) -> dict[str, str]:
    """What differs, with what the device did, among the checks of a kind whose names begin so."""
    checks = [check for check in checks_for(device) if not kind or check.kind == kind]
    checks = [check for check in checks if check.name.startswith(names)] if names else some(checks)
    assert checks
    outcomes = [outcome_of(check, device) for check in checks]
    assert not [each for each in outcomes if each.result == "not seen"]
    return {str(check): each.got for check, each in zip(checks, outcomes, strict=True) if each.result == "differs"}


def test_all_holds_on_the_cpu():
    assert differing("cpu") == {}


@needs_pretended
@one_of_each()
@pytest.mark.parametrize("device", [name for name in PRETENDED if not KINDS_OF_DEVICE[name].adapter])
def test_all_holds_on_a_pretended_device(device):
    with pretend(device):
        assert differing(device) == {}


@needs_pretended
@pytest.mark.exhaustive
@pytest.mark.parametrize("device", [name for name in PRETENDED if KINDS_OF_DEVICE[name].adapter])
def test_all_holds_on_a_pretended_device_of_an_adapter(device):
    """In a process of its own, which can give torch's private device one name."""
    done = subprocess.run([sys.executable, "-m", "assay", "devices", "--check", device, "--pretend"], check=False)
    assert done.returncode == 0


def test_there_are_checks_of_every_kind_and_no_two_of_one_name():
    with pretend("mps"):
        checks = checks_for("mps")
    assert [*dict.fromkeys(check.kind for check in checks)] == list(KINDS)
    assert len({str(check) for check in checks}) == len(checks)
    metrics = [check for check in checks if check.kind.startswith("metrics")]
    assert len(metrics) == len(list(metric_cases()))
    assert {check.name for check in checks if check.kind == "integers"} >= set(OPERATIONS)


def test_a_metric_whose_package_is_missing_is_unseen(monkeypatch):
    def without_text(kind):
        if kind.__name__ == "WordErrorRate":
            raise MissingDependencyError("rapidfuzz", extra="text", purpose="this metric of text")
        yield from examples(kind)

    known = [str(check) for check in checks_for("cpu")]
    monkeypatch.setattr(cases_module, "examples", without_text)
    checks = checks_for("cpu")
    assert [str(check) for check in checks] == known
    (missing,) = [check for check in checks if check.name == "WordErrorRate()"]
    outcome = outcome_of(missing, "cpu")
    assert (outcome.result, outcome.kind) == ("not seen", "metrics")
    assert "assay[text]" in outcome.got


WRITE = "`python -m benchmarks.device_check` writes the expectations"


def test_something_is_expected_of_every_metric_and_operator():
    assert {str(case) for case in metric_cases()} == expectations().metrics.keys(), WRITE
    assert OPERATOR_VALUES.keys() == expectations().values.keys(), WRITE


@needs_pretended
@pytest.mark.exhaustive
def test_the_expectations_are_those_that_the_script_makes():
    """Functions of float64 may differ in the last digit from processor to processor."""
    if not torch.__version__.startswith(expectations().torch):
        pytest.skip(f"they are those of torch {expectations().torch}")
    made, known = device_check.made(), expectations()
    assert made.behaviours == known.behaviours, WRITE
    for name, numbers in made.values.items():
        assert numbers == pytest.approx(known.values[name], rel=1e-14), WRITE
    for case in metric_cases():
        value, expected = made.metrics[str(case)], known.metrics[str(case)]
        assert value.samples == expected.samples, WRITE
        assert not differences(value, expected, case.is_rounded), WRITE


def test_a_device_of_which_nothing_is_known_is_expected_to_do_what_all_accelerators_do():
    of_new, of_mps, of_cuda = (expectations().answers(name) for name in ("new:1", "mps", "cuda"))
    assert of_new["operators: add: device, CPU"] == "RuntimeError"
    assert of_new["operators: erf"] == "runs"
    assert (of_mps["operators: frexp"], of_cuda["operators: frexp"]) == ("NotImplementedError", "runs")
    assert "operators: frexp" not in of_new
    assert of_new.items() <= of_mps.items()


def test_nothing_is_expected_that_tests_of_real_devices_contradict():
    """PyTorch's continuous integration runs these tests (benchmarks/calibration/expected.toml)."""
    of_cuda = expectations().answers("cuda")
    assert "waits: index by the CPU's mask" not in of_cuda
    assert "operators: deterministic embedding_bag max backward" not in of_cuda
    assert of_cuda["waits: nonzero"] == "waits"
    assert of_cuda["operators: add: device, CPU"] == "RuntimeError"


# --- faults --------------------------------------------------------------------------------------------------------


def _raising(call, args, kwargs, generator):
    raise RuntimeError("planted")


def _on_cpu(call, args, kwargs, generator):
    device = args[0].device
    return tuple(each.to(device) for each in call(args[0].cpu())), True


def _waiting(call, args, kwargs, generator):
    args[0].cpu()
    return call(*args, **kwargs), True


def _off_by(ulps: int):
    """Each number of the result is that many units in the last place further from 0."""

    def spoil(call, args, kwargs, generator):
        result = call(*args, **kwargs)
        kind = torch.int32 if result.dtype == torch.float32 else torch.int64
        changed = result.cpu()
        changed = torch.where(changed.isfinite() & (changed != 0), changed.view(kind) + ulps, changed.view(kind))
        return result.copy_(changed.view(result.dtype)), True

    return spoil


def _first_is_lost(call, args, kwargs, generator):
    result = call(*args, **kwargs)
    return result.index_fill_(0, torch.zeros(1, dtype=torch.int64, device=result.device), 0), True


def fault(name: str) -> Kind:
    (found,) = [each for each in FAULTS if each.name == name]
    return found


PLANTED = {
    "an operator that should run raises": ("operators", ("erf",), Kind("", ("erf",), _raising), None),
    "an operator that is missing runs": ("operators", ("frexp",), Kind("", ("frexp",), _on_cpu), None),
    "an index loses its first element": ("dtypes", ("int16", "float32"), Kind("", ("index",), _first_is_lost), None),
    "half of a copy is missing": ("dtypes", ("int64",), fault("half of a copy from the device is missing"), None),
    "an addition waits": ("waits", ("add",), Kind("", ("add",), _waiting), None),
    "a scatter loses one": ("integers", ("scatter_add_",), fault("a scatter loses one"), None),
    "int64 wraps at 32 bits": ("integers", ("sum", "product"), fault("int64 wraps at 32 bits"), None),
    "exp is off by 4 units": ("values", ("exp",), Kind("", ("exp",), _off_by(4)), None),
    "a division is off by a unit": ("values", ("division",), Kind("", ("div",), _off_by(1)), None),
    "a sum leaves one out": ("values", ("sum of a",), fault("a sum leaves one out"), None),
    "a scatter loses one, once": ("laws", ("Confusion of Accuracy(num_classes=4)",), fault("a scatter loses one"), 1),
    "a sum is too large": ("laws", ("Sums of MeanSquaredError()",), fault("a sum of integers is one too large"), None),
    "argmax is wrong": ("metrics", ("Accuracy(num_classes=4)",), fault("argmax is wrong"), None),
    "a comparison is wrong": ("metrics", ("Accuracy()",), fault("a comparison is wrong"), None),
    "log is off by a thousandth": (
        "metrics of rounded terms",
        ("KLDivergence()",),
        Kind("", ("log", "log_"), _off_by(1 << 13)),
        None,
    ),
}
"""By what is wrong: the kind of check, the beginnings of the names of checks, the fault, and the call it strikes in."""


@needs_pretended
@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_found(name):
    kind, names, planted, strikes = PLANTED[name]
    with pretend("mps"):
        assert differing("mps", kind, names) == {}
        with FaultyOperator(planted, "mps", strikes, seed=0):
            found = differing("mps", kind, names)
    assert found
    assert all(check.startswith(f"{kind}: ") for check in found)


def test_a_fault_of_each_kind_is_planted():
    assert {kind for kind, *_ in PLANTED.values()} == set(KINDS)


ELEMENTWISE = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sigmoid", "tanh", "rsqrt", "pow", "sin", "cos"),
    *("acos", "asin", "atan", "atan2", "sinh", "cosh", "erf", "lgamma", "digamma", "_softmax", "_log_softmax"),
    *("logsumexp", "reciprocal", "xlogy", "logaddexp", "logit", "softplus", "special_entr"),
)


def _nearby(call, args, kwargs, generator):
    """Each number of a float result is moved by at most 4 units in the last place, at random."""
    result = call(*args, **kwargs)
    if not (isinstance(result, torch.Tensor) and result.dtype in (torch.float32, torch.float64)):
        return result, False
    kind, values = (torch.int32 if result.dtype == torch.float32 else torch.int64), result.cpu()
    moved = values.view(kind) + torch.randint(-4, 5, values.shape, generator=generator).to(kind)
    is_free = values.isfinite() & (values != 0) & (values.abs() != 1)  # 0 and 1 are exact everywhere
    return result.copy_(torch.where(is_free, moved.view(result.dtype), values)), True


@needs_pretended
def test_a_device_whose_functions_round_otherwise_is_sound():
    """Metrics that are compared to the bit keep their bits, and the others are well within their rounding."""
    operators = tuple(f"{name}{end}" for name in ELEMENTWISE for end in ("", "_"))
    cases = some(list(metric_cases()))
    with pretend("mps"), FaultyOperator(Kind("", operators, _nearby), "mps", None, seed=0) as faulty:
        found = {case: value_on(case, "mps") for case in cases}
    assert faulty.fired
    moved = 0
    for case, value in found.items():
        expected = expectations().metrics[str(case)]
        assert not differences(value, expected, case.is_rounded), case
        moved += bool(differences(value, expected, False))
        for one, other in zip(value.numbers, expected.numbers, strict=True):
            assert not abs(one - other) > (ABSOLUTE + RELATIVE * abs(other)) / 2, case
    assert moved > (2 if Selection.is_thin else 100)
