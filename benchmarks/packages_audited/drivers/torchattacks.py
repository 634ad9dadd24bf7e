"""Calls of torchattacks."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import case, labels, named, uniform

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "FGSM",
        "PGD",
        "BIM",
        "CW",
        "PGDL2",
        "EOTPGD",
        "FFGSM",
        "TPGD",
        "MIFGSM",
        "NIFGSM",
        "SINIFGSM",
        "VMIFGSM",
        "VNIFGSM",
        "DIFGSM",
        "TIFGSM",
        "RFGSM",
        "APGD",
        "APGDT",
        "FAB",
        "Square",
        "DeepFool",
        "OnePixel",
        "SparseFool",
        "GN",
        "UPGD",
        "Jitter",
        "PGDRS",
        "PGDRSL2",
        "Pixle",
        "SPSA",
        "JSMA",
        "PIFGSM",
        "PIFGSMPP",
    ):

        def attack(n=n):

            class Attack(torch.nn.Module):
                def __init__(self):
                    super().__init__()
                    self.net = torch.nn.Sequential(
                        torch.nn.Conv2d(3, 2, 3),
                        torch.nn.AdaptiveAvgPool2d(2),
                        torch.nn.Flatten(),
                        torch.nn.Linear(8, 10),
                    )

                def forward(self, x, y):
                    kw = (
                        {"steps": 2}
                        if n
                        not in (
                            "FGSM",
                            "FFGSM",
                            "GN",
                            "Square",
                            "OnePixel",
                            "FAB",
                            "JSMA",
                            "EADL1",
                            "EADEN",
                            "Pixle",
                            "PIFGSM",
                            "PIFGSMPP",
                        )
                        else {}
                    )
                    if n in ("EADL1", "EADEN"):
                        kw = {"max_iterations": 2, "binary_search_steps": 1}
                    if n == "OnePixel":
                        kw = {"steps": 1, "popsize": 3}
                    if n == "Square":
                        kw = {"n_queries": 3}
                    if n == "FAB":
                        kw = {"steps": 2, "n_classes": 10}
                    if n == "Pixle":
                        kw = {"restarts": 1, "max_iterations": 2}
                    if n == "SPSA":
                        kw = {"nb_iter": 1, "nb_sample": 4}
                    if n == "JSMA":
                        kw = {"theta": 1.0, "gamma": 0.01}
                    return named(f"torchattacks.{n}")(self.net, **kw)(x, y)

            return Attack()

        yield case(f"torchattacks.{n}", attack, (uniform(2, 3, 16, 16), labels(10, 2)))
