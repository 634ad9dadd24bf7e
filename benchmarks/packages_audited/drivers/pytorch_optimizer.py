"""Calls of pytorch_optimizer."""

from collections.abc import Iterator

import torch
from benchmarks.packages_audited.calls import Step, case, instance, labels, named, noise, uniform

from assay.audit import Case


def optimizer(path, **arguments):
    return case(path, lambda: Step(named(path), arguments), (noise(8, 4),))


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in (
        "BinaryDiceLoss",
        "BinaryFocalLoss",
        "BinaryBiTemperedLogisticLoss",
        "TverskyLoss",
        "FocalTverskyLoss",
        "LovaszHingeLoss",
        "SoftF1Loss",
        "LDAMLoss",
        "JaccardLoss",
        "BiTemperedLogisticLoss",
        "FocalCosineLoss",
        "BCELoss",
        "BCEFocalLoss",
        "DiceLoss",
    ):
        kw = {
            "LDAMLoss": {"num_class_list": [3, 3, 3]},
            "DiceLoss": {"mode": "binary"},
            "JaccardLoss": {"mode": "binary"},
            "BinaryBiTemperedLogisticLoss": {"t1": 0.8, "t2": 1.2},
            "BiTemperedLogisticLoss": {"t1": 0.8, "t2": 1.2},
        }.get(n, {})
        if n in ("LDAMLoss",) or n in ("FocalCosineLoss",):
            args = (noise(4, 3), labels(3, 4))
        elif n == "BiTemperedLogisticLoss":
            args = (noise(4, 3), torch.eye(3)[labels(3, 4)])
        else:
            args = (uniform(2, 1, 8, 8), labels(2, 2, 1, 8, 8).float())
        yield instance(f"pytorch_optimizer.loss.{n}", *args, **kw)
    for n in (
        "AdaBelief",
        "AdaBound",
        "AdaDelta",
        "AdaFactor",
        "AdaHessian",
        "AdaLOMO",
        "AdaMax",
        "AdaMod",
        "AdaNorm",
        "AdaPNM",
        "AdaShift",
        "AdaSmooth",
        "AdaTAM",
        "Adai",
        "Adalite",
        "AdamC",
        "AdamG",
        "AdamMini",
        "AdamP",
        "AdamS",
        "AdamW",
        "Adan",
        "AdEMAMix",
        "AggMo",
        "Aida",
        "AliG",
        "Amos",
        "AvaGrad",
        "DAdaptAdaGrad",
        "DAdaptAdam",
        "DAdaptAdan",
        "DAdaptLion",
        "DAdaptSGD",
        "DiffGrad",
        "EmoNavi",
        "EXAdam",
        "FAdam",
        "FOCUS",
        "Fromage",
        "FTRL",
        "GaLore",
        "Grams",
        "Gravity",
        "Kate",
        "Kron",
        "LaProp",
        "Lamb",
        "LARS",
        "Lion",
        "MADGRAD",
        "MARS",
        "MSVAG",
        "Muon",
        "Nero",
        "NovoGrad",
        "PAdam",
        "PID",
        "PNM",
        "Prodigy",
        "QHAdam",
        "QHM",
        "RACS",
        "RAdam",
        "Ranger",
        "Ranger21",
        "Ranger25",
        "SCION",
        "SCIONLight",
        "SGDP",
        "SGDSaI",
        "SGDW",
        "SM3",
        "SOAP",
        "SPAM",
        "SPlus",
        "SRMM",
        "SWATS",
        "ScalableShampoo",
        "ScheduleFreeAdamW",
        "ScheduleFreeRAdam",
        "ScheduleFreeSGD",
        "Shampoo",
        "SignSGD",
        "SimplifiedAdEMAMix",
        "SophiaH",
        "StableAdamW",
        "StableSPAM",
        "TAM",
        "TRAC",
        "Tiger",
        "VSGD",
        "Yogi",
        "bSAM",
        "GrokFastAdamW",
        "AdaGC",
        "AdaGO",
        "Conda",
        "Ano",
        "BCOS",
    ):
        kw = {
            "Ranger21": {"num_iterations": 10},
            "AdamMini": None,
            "AdaHessian": None,
            "AdaLOMO": None,
            "SophiaH": None,
            "AliG": None,
            "TRAC": None,
            "Muon": None,
            "AdaGO": None,
            "bSAM": None,
        }.get(n, {})
        if kw is None:
            continue
        yield optimizer(f"pytorch_optimizer.{n}", **kw)
