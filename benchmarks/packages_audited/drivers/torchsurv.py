"""Calls of torchsurv."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Net, case, function, labels, named, noise, uniform

from assay.audit import Case

LOG = noise(12)


EVENT = labels(2, 12).bool()


TIME = uniform(12) * 10


def surv(kind, what):

    def run(_, hazard, event, time):
        metric = named(f"torchsurv.metrics.{kind}")()
        metric(hazard, event, time)
        return what(metric)

    return lambda: Net(torch.nn.Identity, run)


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for what in ("confidence_interval", "p_value"):
        for m in ("blanche",):
            yield case(
                f"torchsurv.metrics.auc.Auc.{what}({m})",
                surv("auc.Auc", lambda a, what=what, m=m: getattr(a, what)(method=m)),
                (LOG, EVENT, TIME),
            )
        for m in ("noether",):
            yield case(
                f"torchsurv.metrics.cindex.ConcordanceIndex.{what}({m})",
                surv("cindex.ConcordanceIndex", lambda a, what=what, m=m: getattr(a, what)(method=m)),
                (LOG, EVENT, TIME),
            )
    yield case("torchsurv.metrics.auc.Auc.integral", surv("auc.Auc", lambda a: a.integral()), (LOG, EVENT, TIME))
    yield case(
        "torchsurv.metrics.brier_score.BrierScore",
        lambda: Net(torch.nn.Identity, lambda m, s, e, t: named("torchsurv.metrics.brier_score.BrierScore")()(s, e, t)),
        (uniform(12, 12), EVENT, TIME),
    )
    yield function("torchsurv.loss.cox.neg_partial_log_likelihood", LOG, EVENT, TIME)
    yield function("torchsurv.loss.weibull.neg_log_likelihood", noise(12, 2), EVENT, TIME)
    yield function("torchsurv.stats.ipcw.get_ipcw", EVENT, TIME)
    yield case(
        "torchsurv.stats.kaplan_meier.KaplanMeierEstimator",
        lambda: Net(
            torch.nn.Identity,
            lambda m, e, t: (lambda k: (k(e, t), k.predict(t))[1])(
                named("torchsurv.stats.kaplan_meier.KaplanMeierEstimator")()
            ),
        ),
        (EVENT, TIME),
    )
