"""The test that comes with assay: ``python -m assay.selftest`` says whether this installation works.

It needs no extra and no file of the repository, takes less than 20 seconds, and ends with exit code 1 if a check fails.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions, version
from pathlib import Path

import torch

from assay import __version__
from assay.conformance.checks import ConformanceCheck, integer_checks, metric_checks
from assay.conformance.running import outcomes_here
from assay.errors import AssayError, describe
from assay.evaluation import evaluate
from assay.meter import Meter
from assay.metrics import AUROC, Accuracy, BrierScore, CalibrationError, LogLoss
from assay.metrics.samples import public_metrics
from assay.native.compilation import LIBRARY
from assay.native.library import in_torch, is_cut_short, library

SCORES, TARGET, EXPECTED = torch.eye(3, device="cpu"), torch.tensor([0, 1, 1], device="cpu"), 2 / 3
"""Three samples, of which two are right."""
MANY = 5000
INSTALL_AGAIN = "Install the wheel again: pip install --force-reinstall --no-deps WHEEL"


class SelfTestError(AssayError):
    """A check of the installation failed."""


def main() -> int:
    """Run all checks, print a line for each, and return the exit code."""
    start, failed = time.perf_counter(), 0
    print(
        f"assay {__version__}, Python {sys.version.split()[0]}, torch {torch.__version__}, in {Path(__file__).parent}"
    )
    for name, check in CHECKS.items():
        try:
            word, text = "ok", check()
        except Exception as error:  # what a broken installation raises is an answer here
            word, text, failed = "FAILED", f"{type(error).__name__}: {error}", failed + 1
        print(f"{word:6}  {name}: {text}", flush=True)
    verdict = f"{failed} of {len(CHECKS)} checks failed" if failed else f"all {len(CHECKS)} checks passed"
    print(f"{verdict} in {time.perf_counter() - start:.0f} s")
    return int(failed > 0)


def compiled_library() -> str:
    """Whether the compiled library is there, if the wheel was to bring it, and can be loaded."""
    if os.environ.get("ASSAY_NATIVE") == "0":
        return "turned off by ASSAY_NATIVE=0, so everything runs in torch (slower, the same values)"
    if library() is not None:
        return "loaded"
    if LIBRARY.exists():
        why = "ends too early" if is_cut_short(LIBRARY) else "is for another machine or of other sources"
        got = f"{LIBRARY}, which {why}"
        raise SelfTestError(describe("the compiled library", got, "one that loads", INSTALL_AGAIN))
    if brings_library():
        raise SelfTestError(describe("the compiled library", "no file", str(LIBRARY), INSTALL_AGAIN))
    return "not part of this installation, so everything runs in torch (slower, the same values)"


def brings_library() -> bool:
    """Whether the installed wheel was built for one platform, so that it brought the compiled library."""
    try:
        return "-none-any" not in (distribution("assay").read_text("WHEEL") or "-none-any")
    except PackageNotFoundError:
        return False


def integers() -> str:
    """Whether torch's integer operators, which counts rest on, are right here."""
    checks = list(integer_checks())
    return f"{holding(checks).total()} operators of torch give the right integers"


def metrics() -> str:
    """Whether metrics of each family give their known values, those of exact terms in torch, too."""
    checks = [check for check in metric_checks() if not check.name.endswith("weighted")]
    families = {kind.family for kind in public_metrics().values()}
    way = "torch" if library() is None else "compiled code"
    held, again = holding(checks, f" in {way}"), ""
    if way != "torch":
        with in_torch():
            exact = holding([check for check in checks if check.kind == "metrics"], " in torch")
        again = f", {exact.total()} of them again in torch, to the bit"
    if missing := families - held.keys():
        raise SelfTestError(describe("known values", f"none of {', '.join(sorted(missing))}", "some", INSTALL_AGAIN))
    unseen = len(checks) - held.total()
    return f"{held.total()} values of {len(families)} families are right in {way}{again}; not run: {unseen}"


def same_bits() -> str:
    """Whether compiled code and torch count thousands of samples to the same bits."""
    generator = torch.Generator("cpu").manual_seed(0)
    scores = torch.rand(MANY, 8, generator=generator, device="cpu")
    target = torch.randint(8, (MANY,), generator=generator, device="cpu")
    of_classes = Meter(
        accuracy=Accuracy(num_classes=8),
        top=Accuracy(num_classes=8, top_k=3),
        calibration=CalibrationError(num_classes=8),
        loss=LogLoss(num_classes=8),
    )
    of_two = Meter(auroc=AUROC(), brier=BrierScore())
    for counted, preds, truth in ((of_classes, scores, target), (of_two, scores[:, 0].contiguous(), target % 2)):
        compiled = counts(counted, preds, truth)
        with in_torch():
            plain = counts(counted.fresh(), preds, truth)
        differing = [name for name, each in compiled.items() if not torch.equal(each, plain[name])]
        same("counts that differ between compiled code and torch", differing, [])
    ways = "compiled code and in torch" if library() is not None else "torch, twice"
    return f"{MANY} samples are counted to the same bits in {ways}"


def counts(meter: Meter, preds: torch.Tensor, target: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a meter counts of a batch. It is read here, since small batches are counted when they are read."""
    meter.update(preds, target)
    return meter.state_dict()


def holding(checks: list[ConformanceCheck], how: str = "") -> Counter[str]:
    """How many checks hold, by the family of their metric.

    Raises:
        SelfTestError: one differs.
    """
    outcomes = list(outcomes_here(checks, "cpu"))
    if wrong := [each for each in outcomes if each.result == "differs"]:
        got = f"{wrong[0].name} = {wrong[0].got}{how}"
        others = f" ({len(wrong)} of {len(outcomes)} checks differ)"
        raise SelfTestError(describe("known values", got, wrong[0].expected + others, INSTALL_AGAIN))
    kinds = public_metrics()
    names = [each.name.partition("(")[0] for each in outcomes if each.result == "holds"]
    return Counter(kinds[name].family if name in kinds else "" for name in names)


def meter() -> str:
    """Whether a meter is saved, loaded and merged."""
    counted = Meter(accuracy=Accuracy(num_classes=3))
    counted.update(SCORES, TARGET)
    with tempfile.TemporaryDirectory() as folder:
        path = counted.to_file(Path(folder) / "counts.safetensors")
        merged = Meter.from_file(str(path)).merge(counted)
    same("merged counts", (merged.rows, float(merged.compute()["accuracy"])), (2 * len(TARGET), EXPECTED))
    return "saved, loaded and merged"


def evaluation() -> str:
    """Whether a tiny model is evaluated."""
    report = evaluate(
        torch.nn.Identity(), (SCORES, TARGET), {"accuracy": Accuracy(num_classes=3)}, device="cpu", progress=False
    )
    same("the report's accuracy", float(report["accuracy"]), EXPECTED)
    return "a model is evaluated and gives its report"


def same(what: str, got: object, expected: object) -> None:
    """Raise unless two values are equal."""
    if got != expected:
        raise SelfTestError(describe(what, got, repr(expected), INSTALL_AGAIN))


def extras() -> str:
    """Whether the packages of each extra that is installed can be imported; names the extras that are not installed."""
    try:
        lines = distribution("assay").requires or []
    except PackageNotFoundError:
        return "assay runs from its sources, so its extras are not listed"
    pairs = [found.groups() for line in lines if (found := re.match(r"([\w.-]+).*extra == '(\w+)'", line))]
    everything = {package for package, extra in pairs if extra == "all"}
    needed: dict[str, set[str]] = {}
    for package, extra in pairs:
        needed.setdefault(extra, set()).add(package)
    users = {extra: packages for extra, packages in needed.items() if extra != "all" and packages <= everything}
    installed = {extra for extra, packages in users.items() if all(map(is_installed, packages))}
    import_packages({package for extra in installed for package in users[extra]})
    absent = sorted(users.keys() - installed)
    return f"{', '.join(sorted(installed)) or 'none'} can be imported; not installed: {', '.join(absent) or 'none'}"


def is_installed(package: str) -> bool:
    """Whether a distribution is installed."""
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False


def import_packages(packages: set[str]) -> None:
    """Import what distributions bring: the module with the name of one, or all where it has no such module.

    Others may need what is not installed with it, as DuckDB's module for Arrow's drivers does.
    """
    brought: dict[str, set[str]] = {}
    for name, owners in packages_distributions().items():
        for owner in packages & {each.lower() for each in owners}:
            brought.setdefault(owner, set()).add(name)
    for owner, names in sorted(brought.items()):
        for name in sorted(names & {owner.replace("-", "_")} or names):
            if not name.startswith("_"):
                import_module(name)


CHECKS: dict[str, Callable[[], str]] = {
    "compiled library": compiled_library,
    "integers": integers,
    "metrics": metrics,
    "same bits": same_bits,
    "meter": meter,
    "evaluation": evaluation,
    "extras": extras,
}

if __name__ == "__main__":
    sys.exit(main())
