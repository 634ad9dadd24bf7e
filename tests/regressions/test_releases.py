"""The original cases on the old releases themselves: the last one with the bug, and the first without.

``make test-regressions`` installs them, each into a folder of its own, and says where by ``ASSAY_OLD_RELEASES``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.audit.findings.finding import Finding
from assay.audit.running.runner import audit

HERE = Path(__file__).parent
RELEASES = os.environ.get("ASSAY_OLD_RELEASES", "")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not RELEASES, reason="make test-regressions installs the old releases"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of Ignite's import
]


@dataclass(frozen=True)
class Release:
    """An old release under audit, and the line of it that must be found, if there is one."""

    packages: tuple[str, ...]
    target: str
    device: str
    rule: str
    file: str = ""
    line: int = 0
    code: str = ""
    what: str = ""


IGNITE = ("ignite.metrics:Precision", "mps", "dtype-missing")
CUMSUM = (str(HERE / "average_precision.py"), "cuda:1", "moved-to-default-device")
COMPOSER = (str(HERE / "composer_evaluation.py"), "mps", "mixed-devices")
CONCORDANCE = ("torchmetrics.regression:ConcordanceCorrCoef", "cuda:1", "mixed-devices")
CASES = [
    Release(
        ("pytorch-ignite==0.5.1",),
        *IGNITE,
        "ignite/metrics/precision.py",
        84,
        "y_pred = y_pred.to(dtype=torch.float64, device=self._device)",
        "the MPS framework doesn't support float64",
    ),
    Release(("pytorch-ignite==0.5.2",), *IGNITE),
    Release(
        ("torchmetrics==1.4.0.post0",),
        *CUMSUM,
        "torchmetrics/utilities/data.py",
        218,
        "return x.cpu().cumsum(dim=dim, dtype=dtype).cuda()",
        "A tensor goes from cuda:1 to cuda:0, the default",
    ),
    Release(("torchmetrics==1.4.1",), *CUMSUM),
    Release(
        ("torchmetrics==1.4.1",),
        *CONCORDANCE,
        "torchmetrics/functional/regression/pearson.py",
        71,
        "var_x += preds.var(0) * (num_obs - 1)",
        "`var_x` is float32 on cpu, `preds` is float32 on cuda:1",
    ),
    Release(
        ("mosaicml==0.21.1", "composer-needs"),
        *COMPOSER,
        "composer/loss/loss.py",
        108,
        "return F.cross_entropy(",
        "`input` is float32 on cpu, `target` is int64 on mps:0",
    ),
    Release(("mosaicml==0.21.2", "composer-needs"), *COMPOSER),
]


def audited(case: Release, monkeypatch) -> list[Finding]:
    """The findings of the case's rule, with its packages in front of those installed."""
    folders = [Path(RELEASES).resolve() / package for package in case.packages]
    missing = [str(folder) for folder in folders if not folder.is_dir()]
    assert not missing, f"ASSAY_OLD_RELEASES names a folder without {missing}"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(str, folders)))
    result = audit(case.target, on=[case.device])
    assert [str(part) for part in result.unrun if not part.known] == []
    return [found for found in result.findings if found.rule == case.rule]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.packages[0]}-{case.rule}")
def test_the_bug_is_found_in_the_release_that_has_it_and_in_no_other(case, monkeypatch):
    found = audited(case, monkeypatch)
    if not case.file:
        assert found == []
        return
    there = next(each for each in found if each.file.endswith(case.file))
    assert f"/{case.packages[0]}/" in there.file, "the installed release was audited, not the old one"
    assert (there.line, there.code.strip()) == (case.line, case.code)
    assert case.what in there.what
    assert there.fix
