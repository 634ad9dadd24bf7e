"""What a device does, as JSON: the same questions to a real device and to a pretend one.

python -m benchmarks.calibration.probe --device cuda:1 --pretend > pretend.json
python -m benchmarks.calibration.probe --device cuda:1 > real.json            # on a machine with two GPUs
python -m benchmarks.calibration.compare real.json pretend.json

With one GPU, ask both for `--device cuda`. On a Mac it is `mps`, with an Intel GPU `xpu`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor

from assay.conformance.deterministic import DETERMINISTIC
from assay.conformance.fixed_inputs import square
from assay.conformance.mixed_operands import FAMILIES, NUMBERS
from assay.conformance.waits import WAITS
from benchmarks.calibration import behaviours

Answer = dict[str, Any]
Question = Callable[[], Answer]
LENGTH = 600  # characters of a text that are kept


def questions(device: str, pretended: Any) -> dict[str, Question]:
    """Every question by its name, ``family: what``."""
    asked: dict[str, Question] = {}
    for name, two in FAMILIES.items():
        asked[f"mixed: {name}: device, host"] = _ask(lambda d, f=two: f(square(d), square("cpu")), device)
        asked[f"mixed: {name}: host, device"] = _ask(lambda d, f=two: f(square("cpu"), square(d)), device)
    for name, two in NUMBERS.items():
        asked[f"number: {name}: on the CPU"] = _ask(lambda d, f=two: f(square(d), torch.tensor(1.0)), device)
        asked[f"number: {name}: on the device"] = _ask(
            lambda d, f=two: f(square("cpu"), torch.tensor(1.0).to(d)), device
        )
    for family, table in (("lands", behaviours.LANDS), ("copies", behaviours.COPIES), ("range", behaviours.RANGE)):
        asked |= {f"{family}: {name}": _ask(one, device) for name, one in table.items()}
    asked |= {f"deterministic: {name}": _ask(one, device) for name, one in DETERMINISTIC.items()}
    asked |= {f"waits: {name}": _waits(one, device, pretended) for name, one in WAITS.items()}
    if torch.device(device).index:
        asked |= {
            f"two devices: {n}": _ask(lambda d, f=f: f(square(d), square(_first(d))), device)
            for n, f in FAMILIES.items()
        }
    return asked


def _first(device: str) -> str:
    return f"{torch.device(device).type}:0"


def _ask(one: Callable[[str], Any], device: str) -> Question:
    return lambda: _answer(lambda: one(device))


def _answer(run: Callable[[], Any]) -> Answer:
    """What came out, in words: an error with its text, or dtypes, shapes and devices."""
    try:
        return {"value": _told(run())}
    except Exception as error:
        text = str(error).splitlines()[0] if str(error) else ""
        return {"error": type(error).__name__, "text": text[:LENGTH]}


def _told(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} on {value.device}"
    if isinstance(value, (tuple, list)) and any(isinstance(one, Tensor) for one in value):
        return "; ".join(_told(one) for one in value)
    return repr(value)[:LENGTH]


def _waits(prepare: Callable[[str], Callable[[], Any]], device: str, pretended: Any) -> Question:
    """Whether the CPU waits: as CUDA's debug mode warns of it, or as a pretend device notes it."""

    def ask() -> Answer:
        try:
            run = prepare(device)
            run()  # once before: the first call may load a library
            run = prepare(device)
        except Exception as error:
            return {"error": type(error).__name__, "text": str(error).splitlines()[0][:LENGTH]}
        with _counted(device, pretended) as count:
            answer = _answer(run)
        return answer if "error" in answer else {"waits": count() > 0, "times": count()}

    return ask


@contextlib.contextmanager
def _counted(device: str, pretended: Any) -> Iterator[Callable[[], int]]:
    if pretended is not None:
        before = len(pretended.syncs)
        yield lambda: len(pretended.syncs) - before
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield lambda: sum("called a synchronizing" in str(one.message) for one in caught)
        finally:
            torch.cuda.set_sync_debug_mode("default")


def _observable(name: str, device: str, pretended: Any) -> bool:
    """Only CUDA says where the program synchronizes with the device; a real mps or xpu does not."""
    return pretended is not None or not name.startswith("waits:") or torch.device(device).type == "cuda"


def run(device: str, pretended: Any, chosen: str = "") -> dict[str, Answer]:
    """The answers to all questions, or to those whose name matches a regular expression."""
    answers: dict[str, Answer] = {}
    for name, question in questions(device, pretended).items():
        if not re.search(chosen, name):
            continue
        if not _observable(name, device, pretended):
            answers[name] = {"unknown": "this device does not say where the program synchronizes with the device"}
        elif name.startswith("range:") and pretended is None:
            answers[name] = _alone(device, name)
        else:
            answers[name] = _calm(question)
    return answers


def _calm(question: Question) -> Answer:
    torch.manual_seed(0)
    with warnings.catch_warnings(action="ignore"):
        return question()


def _alone(device: str, name: str) -> Answer:
    """In a process of its own, which may not survive the answer."""
    command = [sys.executable, "-m", __spec__.name, "--device", device, "--one", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return json.loads(lines[-1]) if lines else {"error": "the process ended", "text": str(done.returncode)}


def about(device: str, pretended: Any) -> dict[str, str]:
    """What the answers hold for."""
    kind = torch.device(device).type
    name = "pretended" if pretended is not None else kind
    if pretended is None and kind in ("cuda", "xpu"):
        name = str(getattr(torch, kind).get_device_name(device))
    return {"device": device, "name": name, "torch": torch.__version__, "python": sys.version.split()[0]}


@contextlib.contextmanager
def _opened(device: str, pretending: bool) -> Iterator[Any]:
    if not pretending:
        yield None
        return
    from assay.pretend import pretend

    with pretend(device) as pretended:
        yield pretended


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--pretend", action="store_true", help="ask a pretend device")
    parser.add_argument("--only", default="", help="a regular expression of names")
    parser.add_argument("--one", help="one name, without more ado")
    asked = parser.parse_args()
    os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)
    with _opened(asked.device, asked.pretend) as pretended:
        if asked.one:
            print(json.dumps(_calm(questions(asked.device, pretended)[asked.one])))
            return
        answers = run(asked.device, pretended, asked.only)
        print(json.dumps({"about": about(asked.device, pretended), "answers": answers}, indent=1))


if __name__ == "__main__":
    main()
