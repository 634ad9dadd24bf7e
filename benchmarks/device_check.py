"""What devices are checked against: `python -m benchmarks.device_check` writes src/assay/conformance/expected.json.

Values come from the CPU. What operators do on a device comes from a pretended one, and so from the facts about it in
src/assay/devices/known; where PyTorch's own tests of real devices contradict a pretended one
(benchmarks/calibration/expected.toml), or the two engines of pretended devices answer differently, nothing is expected.
"""

from __future__ import annotations

import re
import sys
import tomllib
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path

import torch

from assay.conformance.checks import RUNS, answer, questions
from assay.conformance.metric_cases import metric_cases, value_on
from assay.conformance.operator_values import OPERATOR_VALUES, reference
from assay.conformance.outcomes import Expectations, ExpectedAnswers
from assay.devices.kinds import HOST, PRETENDED
from assay.pretend import PretendError, pretend
from benchmarks.calibration.compare import EXPECTED

UNCERTAIN = ("waits: synchronize", "waits: to the device without waiting")
"""What a pretended device notes and CUDA's debug mode does not tell: docs/calibration.md, "Known to differ"."""
REFUSED = "cannot be pretended"
FILE = Path(__file__).parents[1] / "src/assay/conformance/expected.json"


def made() -> Expectations:
    """The expectations of this version of torch and of assay."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Expectations(
            torch=torch.__version__.partition("+")[0],
            behaviours=grouped(behaviours()),
            values={name: reference(case) for name, case in OPERATOR_VALUES.items()},
            metrics={str(case): value_on(case, "cpu") for case in metric_cases()},
        )


def behaviours() -> dict[str, dict[str, str]]:
    """What each kind of device answers, without what is known to be wrong."""
    found: dict[str, dict[str, str]] = {}
    for device in (HOST, *PRETENDED):
        for name, given in certain(device).items():
            found.setdefault(name, {})[device] = given
        for name in contradicted(device, found):
            del found[name][device]
    return found


def certain(device: str) -> dict[str, str]:
    """What a kind of device answers, where both engines of pretended ones say the same."""
    engines = ("native", "python") if device != HOST else ("",)
    with get_context("spawn").Pool(1, maxtasksperchild=1) as processes:  # each can pretend one kind of an adapter, once
        native, python = [processes.apply(answers, (device, each)) for each in engines] * (3 - len(engines))
    agree = {name: given for name, given in native.items() if python[name] in (given, REFUSED)}
    return {name: given for name, given in agree.items() if given != REFUSED and name not in UNCERTAIN}


def answers(device: str, engine: str) -> dict[str, str]:
    """What a device answers to all questions, pretended by an engine; on the CPU nothing is waited for."""
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    found = {}
    with pretend(device, engine=engine) if engine else nullcontext():
        for kind, asked in questions().items():
            for name, question in asked.items() if engine or kind != "waits" else ():
                try:
                    found[f"{kind}: {name}"] = answer(question, device).partition(":")[0]
                except PretendError:
                    found[f"{kind}: {name}"] = REFUSED
    return found


def grouped(answers: dict[str, dict[str, str]]) -> tuple[ExpectedAnswers, ...]:
    """Questions with the same answers stand together."""
    groups: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for question, found in answers.items():
        groups.setdefault(tuple(found.items()), []).append(question)
    return tuple(ExpectedAnswers(dict(found), tuple(names)) for found, names in groups.items())


def contradicted(device: str, found: dict[str, dict[str, str]]) -> Iterator[str]:
    """The questions to which PyTorch's tests of real devices give another answer."""
    for each in tomllib.loads(EXPECTED.read_text("utf-8"))["expected"]:
        if device in each["devices"]:
            real = dict.fromkeys((f"waits: {name}" for name in each.get("waits", ())), "waits")
            real |= dict.fromkeys((f"waits: {name}" for name in each.get("no_wait", ())), "does not wait")
            real |= {named(name): "Error" for name in each.get("raises", {})}
            real |= {named(name): RUNS for name in each.get("values", {})}
            for name, wanted in real.items():
                if name in found and device in found[name] and not found[name][device].endswith(wanted):
                    yield name


def named(probed: str) -> str:
    """The name of a question of `benchmarks.calibration.probe` among the checks, if it is one of them."""
    family, _, rest = probed.partition(": ")
    rest = re.sub(r"\bhost\b", "CPU", rest).replace(": on the ", ": a number of the ")
    prefixes = {"mixed": "operators: ", "number": "operators: ", "deterministic": "operators: deterministic "}
    return f"{prefixes.get(family, family)}{rest}"


if __name__ == "__main__":
    FILE.write_text(made().to_json(), encoding="utf-8")
    print(f"{FILE}: {FILE.stat().st_size:,} bytes", file=sys.stderr)
