"""Calls of adabelief_pytorch."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Step, case, named, noise

from assay.audit import Case


def optimizer(path, **arguments):
    return case(path, lambda: Step(named(path), arguments), (noise(8, 4),))


def audit_cases() -> Iterator[Case]:
    """What is called."""
    yield optimizer("adabelief_pytorch.AdaBelief", print_change_log=False)
