"""The five cases that gave rise to the audit: small forms of them under examples/regressions, each with its fix."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.audit.running.runner import audit
from assay.pretend.native_engine.build import why_not
from thinning import one_of_each

FOLDER = Path(__file__).parents[2] / "examples" / "regressions"
pytestmark = pytest.mark.skipif(bool(why_not()), reason="the native engine needs a C++ compiler")


@dataclass(frozen=True)
class OriginalCase:
    """What the audit must say of one case."""

    target: str
    device: str
    rule: str
    line: str
    what: str
    fix: str


CASES = [
    OriginalCase(
        "precision_in_float64.py",
        "mps",
        "dtype-missing",
        "found = one_hot(preds.argmax(1), CLASSES).to(torch.float64)",
        "the MPS framework doesn't support float64",
        "Use float32 in `one_hot(preds.argmax(1), CLASSES).to(torch.float64)` where the device lacks the dtype",
    ),
    OriginalCase(
        "outputs_moved_alone.py:evaluate",
        "mps",
        "mixed-devices",
        "losses.append(cross_entropy(outputs, target))",
        "`outputs` is float32 on cpu, `target` is int64 on mps:0",
        "Make `outputs` on the device of the inputs",
    ),
    OriginalCase(
        "state_on_the_cpu.py",
        "cuda:1",
        "mixed-devices",
        "self.sums += self.moments(preds, target)",
        "`self.sums` is float32 on cpu",
        "or move the object to the device before it is fed",
    ),
    OriginalCase(
        "operator_that_was_missing.py:quantize",
        "mps",
        "operator-missing",
        "return torch.ops.aten._convert_weight_to_int4pack(weights(device), 2)",
        "The operator 'aten::_convert_weight_to_int4pack' is not currently implemented for the MPS device.",
        "or do it on the CPU",
    ),
    OriginalCase(
        "detour_to_the_default_device.py:average_precision",
        "cuda:1",
        "moved-to-default-device",
        "return values.cpu().cumsum(0).cuda()",
        "A tensor goes from cuda:1 to cuda:0, the default",
        "by one that names the device the tensor came from: `.to(x.device)`",
    ),
]


@pytest.fixture(autouse=True)
def _release(monkeypatch):
    monkeypatch.setenv("ASSAY_PRETEND_TORCH", "2.4")  # for the operator that torch 2.5 brought


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.target.partition(".")[0])
@one_of_each()
def test_the_audit_names_the_bug_the_line_and_the_fix(case):
    result = audit(str(FOLDER / case.target), on=[case.device])
    assert result.unrun == ()
    found = next(each for each in result.findings if each.rule == case.rule)
    assert found.code.strip().startswith(case.line)
    assert Path(found.file).name == case.target.partition(":")[0]
    assert case.what in found.what
    assert case.fix in found.fix
    assert not any("Fixed" in subject for each in result.findings for subject in each.subjects)
    assert result.exit_code() == 1


@pytest.mark.exhaustive
@pytest.mark.parametrize("case", [case for case in CASES if ":" in case.target], ids=lambda case: case.target)
@one_of_each()
def test_the_mended_form_has_no_finding(case):
    result = audit(f"{FOLDER / case.target.partition(':')[0]}:fixed", on=[case.device])
    assert (result.findings, result.unrun, result.exit_code()) == ((), (), 0)
