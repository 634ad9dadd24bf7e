"""Calls of pycox."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, labels, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("pycox.models.loss.nll_pmf_cr", noise(4, 2, 5), labels(5, 4), labels(3, 4))
    yield function(
        "pycox.models.loss.rank_loss_deephit_cr", noise(4, 2, 5), labels(5, 4), labels(3, 4), uniform(4, 4), sigma=0.1
    )
    yield function("pycox.models.loss.nll_logistic_hazard", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.bce_surv_loss", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.nll_mtlr", noise(4, 5), labels(5, 4), labels(2, 4).float())
    yield function("pycox.models.loss.cox_ph_loss", noise(4), uniform(4), labels(2, 4).float())
