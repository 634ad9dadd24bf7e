"""Calls of entmax."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, instance, labels, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("sparsemax", "entmax15", "normmax_bisect", "sparsemax_bisect", "entmax_bisect", "budget_bisect"):
        kw = {"budget": 2} if n.startswith("budget") else {}
        yield function(f"entmax.{n}", noise(3, 5), **kw)
    for n in ("SparsemaxLoss", "Entmax15Loss", "EntmaxBisectLoss"):
        yield instance(f"entmax.{n}", noise(3, 5), labels(5, 3))
    yield function("entmax.sparsemax", noise(2, 3))
