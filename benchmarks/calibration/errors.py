"""The errors that PyTorch's operator database expects, on a pretend device: type and text.

Some of them are about devices, and PyTorch's own tests expect them on CUDA.

python -m benchmarks.calibration.errors --device cuda:1
"""

from __future__ import annotations

import collections
import re
from typing import Any

import torch

from assay.pretend import pretend
from benchmarks.calibration import operators, samples, stream

OUTCOMES = ("no reference", "same", "other text", "other type", "no error", "crash")  # from good to bad


def with_errors() -> list[Any]:
    """The entries of the operator database that say which inputs are wrong."""
    return [operator for operator in samples.operators() if operator.error_inputs_func is not None]


def check(operator: Any, device: torch.device) -> stream.Result:
    """What became of the inputs of an operator that must raise."""
    found: list[tuple[str, str]] = []
    try:
        for wrong in operator.error_inputs(str(device)):
            found.append(_one(operator, wrong))
    except Exception as error:  # the input function itself
        found.append(("no reference", operators.words(error)))
    outcome, why = max(found, key=lambda one: OUTCOMES.index(one[0]), default=("no reference", "no inputs"))
    return {"outcome": outcome, "why": why, "samples": [kind for kind, _ in found]}


def _one(operator: Any, wrong: Any) -> tuple[str, str]:
    sample = wrong.sample_input
    expected = f"expected {wrong.error_type.__name__} with {wrong.error_regex!r}"
    try:
        if operator(sample.input, *sample.args, **sample.kwargs) is NotImplemented:
            return "same", ""  # Python then tries the other operand, and raises
    except wrong.error_type as error:
        if re.search(wrong.error_regex, str(error)):
            return "same", ""
        return "other text", f"{operators.words(error)}; {expected}"
    except Exception as error:
        return "other type", f"{operators.words(error)}; {expected}"
    return "no error", expected


def run(device: str) -> list[stream.Result]:
    """The result of every operator that says which inputs are wrong, here in this process."""
    with stream.quietly(), pretend(device) as pretended:
        return [{"name": samples.name(one), **check(one, pretended.device)} for one in with_errors()]


def main() -> None:
    database = with_errors()
    names = [samples.name(operator) for operator in database]
    cpu = torch.device("cpu")
    results = stream.check_all(
        __spec__.name, __doc__, names, lambda i, place: check(database[i], place.device if place else cpu)
    )
    print(dict(collections.Counter(kind for one in results for kind in one.get("samples", ["crash"]))))
    for one in results:
        if one["outcome"] != "same":
            print(f"{one['outcome']:14} {one['name']}: {one['why']}")


if __name__ == "__main__":
    main()
