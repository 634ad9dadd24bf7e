"""Every operator of PyTorch's database on a pretend device: the same bits as on the CPU, refused, or wrong.

python -m benchmarks.calibration.operators --device cuda:1
"""

from __future__ import annotations

import collections
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from assay.pretend import PretendError, pretend
from benchmarks.calibration import samples, stream
from benchmarks.calibration.bits import Rounding, differ
from benchmarks.calibration.stream import Result

MOST = 4
# From good to bad; the outcome of an operator is that of its worst sample.
OUTCOMES = {
    "no reference": "the CPU itself raises, or there is no input of these dtypes",
    "equal": "the same bits as on the CPU, forward and backward",
    "random": "a random operator: the same dtypes and shapes",
    "undefined": "memory that nobody wrote: the same dtypes and shapes",
    "rounding": "within the tolerances of torch.testing: PyTorch itself goes another way on this device",
    "not simulated": "refused with a PretendError: there is no CPU kernel to borrow, or the engine cannot do it",
    "refused": "refused, as the real device refuses it: no such operator, dtype or deterministic form",
    "failed": "an error that the CPU does not give, and that is no refusal",
    "wrong": "other values, dtypes or shapes than on the CPU",
    "crash": "the process ended",
}
GOOD = ("equal", "random", "undefined")
# Their results are memory that nobody wrote.
UNINITIALISED = {
    "as_strided", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "resize_", "resize_as_",
}  # fmt: skip
MOVES = {"_to_copy", "clone", "detach", "view", "_unsafe_view", "t", "transpose"}  # say nothing about another way
UNDEFINED_VARIANTS = {"as_strided": ("partial_views",)}


def undefined(operator: Any) -> bool:
    """Whether the values of the operator's result mean nothing."""
    variants = UNDEFINED_VARIANTS.get(operator.name)
    return operator.name in UNINITIALISED and (variants is None or operator.variant_test_name in variants)


def check(operator: Any, device: torch.device, pretended: Any, most: int = MOST) -> Result:
    """What became of the first samples of an operator."""
    dtype = samples.dtype_of(operator)
    if dtype is None:
        return {"outcome": "no reference", "why": "none of the dtypes", "samples": []}
    grad = dtype.is_floating_point and bool(operator.supports_autograd)
    found: list[tuple[str, str]] = []
    try:
        for tree in samples.inputs(operator, dtype, most, requires_grad=grad):
            found.append(sample(operator, tree, device, pretended))
    except Exception as error:  # the sample function itself
        found.append(("no reference", words(error)))
    outcome, why = worst(found)
    return {"outcome": outcome, "why": why, "dtype": str(dtype), "samples": [kind for kind, _ in found]}


def worst(found: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The outcome of an operator is that of its worst sample, and why."""
    kinds = list(OUTCOMES)
    return max(found, key=lambda one: kinds.index(one[0]), default=("no reference", "no samples"))


def sample(operator: Any, tree: Any, device: torch.device, pretended: Any) -> tuple[str, str]:
    """The outcome of one input, and why."""
    try:
        first, again, other = _reference(operator, tree)
    except RuntimeError:  # some have no gradient of ones, linalg.eig for one
        tree = pytree.tree_map_only(Tensor, Tensor.detach, tree)
        try:
            first, again, other = _reference(operator, tree)
        except Exception as error:
            return "no reference", words(error)
    except Exception as error:
        return "no reference", words(error)
    events = pretended.recorder.of("dtype", "operator", "deterministic", "devices")
    try:
        found = _run(operator, samples.put(tree, device, samples.host_arguments(operator)), 0)
    except Exception as error:
        return _refused(error, pretended, len(events)), words(error)
    if undefined(operator) or differ(first, again):
        return _compared(first, found, "undefined", False)
    if differ(first, other):
        return _compared(first, found, "random", False)
    outcome, why = _compared(first, found, "equal", True)
    return (
        (outcome, f"{why}; {_another_way(operator, tree, device)}")
        if outcome in ("rounding", "wrong")
        else ("equal", why)
    )


def _reference(operator: Any, tree: Any) -> tuple[Any, Any, Any]:
    """The CPU's results: one, the same again, and one with another seed."""
    return tuple(_run(operator, samples.put(tree, "cpu"), seed) for seed in (0, 0, 1))  # type: ignore[return-value]


def _compared(expected: Any, found: Any, outcome: str, values: bool) -> tuple[str, str]:
    try:
        why = differ(expected, found, values)
    except Exception as error:
        return "failed", f"while the result was read: {words(error)}"
    if isinstance(why, Rounding):
        return "rounding", why
    return ("wrong", why) if why else (outcome, "")


def _another_way(operator: Any, tree: Any, device: torch.device) -> str:
    """The operators that PyTorch runs on the device and not on the CPU, and the other way round."""
    here, there = (_path(operator, tree, place) for place in ("cpu", device))
    if here == there:
        return "runs the same operators"
    only_there, only_here = (", ".join(sorted(names)) or "nothing" for names in (there - here, here - there))
    return f"runs {only_there} there, and {only_here} on the CPU"


class _Path(TorchDispatchMode):
    """Notes the operators below autograd."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def _path(operator: Any, tree: Any, device: torch.device | str) -> set[str]:
    there = samples.put(tree, device, samples.host_arguments(operator))
    with _Path() as path:
        _run(operator, there, 0)
    return {name.split(".")[1] for name in path.names} - MOVES


def _refused(error: Exception, pretended: Any, before: int) -> str:
    if isinstance(error, PretendError):
        return "not simulated"
    if isinstance(error, NotImplementedError):
        return "refused"  # by torch itself, where there is no operator to be recorded
    refusals = pretended.recorder.of("dtype", "operator", "deterministic", "devices")
    return "refused" if len(refusals) > before and refusals[-1].kind != "devices" else "failed"


def _run(operator: Any, tree: Any, seed: int) -> Any:
    """The result and, where the operator has them, the gradients of all inputs for a gradient of ones."""
    value, args, kwargs = tree
    torch.manual_seed(seed)
    result = operator.op(value, *args, **kwargs)
    leaves = [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, Tensor) and leaf.requires_grad]
    outs = [out for out in pytree.tree_leaves(result) if isinstance(out, Tensor) and out.requires_grad]
    outs = [out for out in outs if out.layout == torch.strided and not out.is_nested]
    if not leaves or not outs:
        return result
    ones = [torch.ones_like(out) for out in outs]
    return result, torch.autograd.grad(outs, leaves, ones, allow_unused=True)


def words(error: Exception) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def run(device: str, names: list[str] | None = None, most: int = MOST) -> list[Result]:
    """The result of every operator (or of the named ones), here in this process."""
    chosen = [operator for operator in samples.operators() if names is None or samples.name(operator) in names]
    with stream.quietly(), pretend(device) as pretended:
        return [{"name": samples.name(one), **check(one, pretended.device, pretended, most)} for one in chosen]


def summary(results: Iterable[Result]) -> dict[str, collections.Counter[str]]:
    """How many operators, and how many samples, had which outcome."""
    results = list(results)
    inside = collections.Counter(kind for one in results for kind in one.get("samples", ["crash"]))
    return {"operators": collections.Counter(one["outcome"] for one in results), "samples": inside}


def share_equal(counts: collections.Counter[str]) -> float:
    """The share of good outcomes among those with a reference."""
    total = sum(counts.values()) - counts["no reference"]
    return sum(counts[kind] for kind in GOOD) / total if total else 0.0


def show(results: list[Result]) -> None:
    """Print the counts, and each that is not equal."""
    for what, counts in summary(results).items():
        print(f"{what}: {dict(counts)}; {share_equal(counts):.2%} equal")
    for one in results:
        if one["outcome"] not in (*GOOD, "no reference"):
            print(f"{one['outcome']:14} {one['name']}: {one['why']}")


def main() -> None:
    database = samples.operators()
    names = [samples.name(operator) for operator in database]
    results = stream.check_all(__spec__.name, __doc__, names, lambda i, place: check(database[i], place.device, place))
    show(results)


if __name__ == "__main__":
    main()
