"""Calls of schedulefree."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Step, case, named, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("AdamWScheduleFree", "SGDScheduleFree", "RAdamScheduleFree"):
        yield case(
            f"schedulefree.{n}",
            lambda n=n: Step(lambda p: (lambda o: (o.train(), o)[1])(named(f"schedulefree.{n}")(p, lr=0.1)), {}),
            (noise(8, 4),),
        )
