"""Calls of torch_optimizer."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Step, case, named, noise

from assay.audit import Case


def optimizer(path, **arguments):
    return case(path, lambda: Step(named(path), arguments), (noise(8, 4),))


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "A2GradExp",
        "A2GradInc",
        "A2GradUni",
        "AccSGD",
        "AdaBelief",
        "AdaBound",
        "AdaMod",
        "Adafactor",
        "AggMo",
        "Apollo",
        "DiffGrad",
        "Lamb",
        "LARS",
        "MADGRAD",
        "NovoGrad",
        "PID",
        "QHAdam",
        "QHM",
        "RAdam",
        "Ranger",
        "RangerQH",
        "RangerVA",
        "SGDP",
        "SGDW",
        "SWATS",
        "Shampoo",
        "Yogi",
        "AdamP",
    ):
        yield optimizer(f"torch_optimizer.{n}", **{"lr": 0.01} if n in ("Adafactor",) else {})
