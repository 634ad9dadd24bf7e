"""Calls of allrank."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, labels, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield function("allrank.models.losses.listMLE.listMLE", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.ndcg", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.dcg", noise(4, 8), labels(3, 4, 8).float())
    yield function("allrank.models.metrics.mrr", noise(4, 8), labels(3, 4, 8).float())
