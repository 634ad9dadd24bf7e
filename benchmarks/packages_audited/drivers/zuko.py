"""Calls of zuko."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import Net, case, named, noise, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("NSF", "MAF", "NICE", "GMM", "CNF", "NAF", "UNAF", "SOSPF", "NCSF", "BPF", "GF"):
        yield case(
            f"zuko.flows.{n}",
            lambda n=n: Net(
                lambda: (
                    named(f"zuko.flows.{n}")(features=3, context=2) if n != "GMM" else named("zuko.mixtures.GMM")(3, 2)
                ),
                lambda f, x, c: f(c).log_prob(x),
            ),
            (uniform(4, 3), noise(4, 2)),
        )
        yield case(
            f"zuko.flows.{n}.rsample",
            lambda n=n: Net(
                lambda: (
                    named(f"zuko.flows.{n}")(features=3, context=2) if n != "GMM" else named("zuko.mixtures.GMM")(3, 2)
                ),
                lambda f, c: f(c).rsample() if f(c).has_rsample else f(c).sample(),
            ),
            (noise(4, 2),),
        )
