"""Calls of torchjd."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import instance, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "UPGrad",
        "MGDA",
        "PCGrad",
        "CAGrad",
        "GradDrop",
        "IMTLG",
        "Krum",
        "NashMTL",
        "AlignedMTL",
        "DualProj",
        "GradVac",
        "Mean",
        "Random",
        "Sum",
        "TrimmedMean",
        "ConFIG",
        "CRMOGM",
        "FairGrad",
        "PCD",
    ):
        kw = {
            "CAGrad": {"c": 0.5},
            "Krum": {"n_byzantine": 1},
            "NashMTL": {"n_tasks": 4},
            "TrimmedMean": {"trim_number": 1},
        }.get(n, {})
        yield instance(f"torchjd.aggregation.{n}", noise(4, 6), **kw)
