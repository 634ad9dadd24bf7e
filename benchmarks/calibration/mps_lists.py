"""The operators that pretend mps lacks, against the lists of PyTorch's own tests for mps.

The lists stand in `torch/testing/_internal/common_mps.py`, which the wheel ships, inside a condition that holds only on
a Mac: they are read, not run. More expected failures stand in the operator database itself.

Run `operators --device mps` first.

python -m benchmarks.calibration.mps_lists
"""

from __future__ import annotations

import ast
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.calibration import operators, samples, stream

FILE = Path(torch.__file__).parent / "testing" / "_internal" / "common_mps.py"
UNIMPLEMENTED = "UNIMPLEMENTED_XFAILLIST"
DOWNSTREAM = "ON_MPS_XFAILLIST"
GRADIENT = "XFAILLIST_GRAD"
# Why the two disagree, where they do.
REASONS = {
    "nn.functional.adaptive_avg_pool1d": "the real one refuses sizes that do not divide (AdaptivePooling.mm); pretend "
    "has no rules for sizes",
    "nn.functional.adaptive_avg_pool2d": "as for adaptive_avg_pool1d",
    "native_group_norm": "expected for the values of its gradient, which is no refusal",
    "masked.median": "the list gives no reason",
    "svd_lowrank": "draws random numbers: its values differ, which is no refusal",
}
Listed = dict[str, list[str] | None]


def lists() -> dict[str, Listed]:
    """Every list of expected failures: operator -> the dtypes that fail, or ``None`` for all."""
    found: dict[str, Listed] = {}
    for node in ast.walk(ast.parse(FILE.read_text("utf-8"))):
        target, value = _assigned(node)
        if isinstance(value, ast.Dict) and "XFAILLIST" in target:
            found.setdefault(target, _entries(value))
    return found


def _assigned(node: ast.AST) -> tuple[str, ast.expr | None]:
    if isinstance(node, ast.AnnAssign):
        return ast.unparse(node.target), node.value
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]), node.value
    return "", None


def _entries(value: ast.Dict) -> Listed:
    return {
        ast.literal_eval(key): [ast.unparse(one) for one in dtypes.elts] if isinstance(dtypes, ast.List) else None
        for key, dtypes in zip(value.keys, value.values, strict=True)
        if key is not None
    }


def expected(listed: Listed, name: str, dtype: str) -> bool:
    """Whether a list says that an operator fails with this dtype."""
    return name in listed and (listed[name] is None or dtype in (listed[name] or []))


def decorated(operator: Any, dtype: torch.dtype) -> bool:
    """Whether the operator database itself expects the tests of mps to fail."""
    return any(_fails(one, dtype) for one in operator.decorators if hasattr(one, "cls_name"))


def _fails(one: Any, dtype: torch.dtype) -> bool:
    of_mps = one.cls_name == "TestConsistency" or (one.cls_name == "TestCommon" and one.device_type == "mps")
    whole = one.test_name in (None, "test_output_match", "test_output_grad_match")
    failing = any(getattr(how, "__name__", "") == "expectedFailure" for how in one.decorators)
    return of_mps and whole and failing and (one.dtypes is None or dtype in one.dtypes)


@dataclass(frozen=True)
class Agreement:
    """The operators by what PyTorch expects of mps, and what a pretend mps does."""

    both: tuple[str, ...]
    refused_only: tuple[str, ...]
    listed_only: tuple[str, ...]
    neither: tuple[str, ...]


def compare(results: list[stream.Result]) -> Agreement:
    """Which operators are expected to fail on mps, and which raise on a pretend one."""
    known, database = lists(), {samples.name(one): one for one in samples.operators()}
    groups: dict[tuple[bool, bool], list[str]] = {(a, b): [] for a in (True, False) for b in (True, False)}
    for one in results:
        name = one["name"]
        if one["outcome"] not in ("no reference", "crash") and name in database:
            groups[_expected(name, one["dtype"], known, database[name]), raises(one)].append(name)
    return Agreement(*(tuple(groups[key]) for key in ((True, True), (False, True), (True, False), (False, False))))


def forward_fails(operator: Any, dtype: torch.dtype, known: dict[str, Listed]) -> bool:
    """Whether PyTorch's tests expect an operator, without its gradient, to fail on mps with a dtype."""
    listed = any(expected(known[which], samples.name(operator), str(dtype)) for which in (UNIMPLEMENTED, DOWNSTREAM))
    return listed or decorated(operator, dtype)


def _expected(name: str, dtype: str, known: dict[str, Listed], operator: Any) -> bool:
    missing_gradient = name in known[GRADIENT] and known[GRADIENT][name] is None and operator.supports_autograd
    return (missing_gradient and name.startswith("_upsample")) or forward_fails(
        operator, getattr(torch, dtype.removeprefix("torch.")), known
    )


def raises(one: stream.Result) -> bool:
    """Whether any of the samples raised on the pretend device, but not on the CPU."""
    return bool({"refused", "failed", "not simulated"} & set(one["samples"]))


def again(results: list[stream.Result], names: tuple[str, ...]) -> list[stream.Result]:
    """The results, those of some operators from all of their samples: later ones may be what is expected to fail."""
    fresh = {one["name"]: one for one in operators.run("mps", list(names), most=1_000)}
    return [fresh.get(one["name"], one) for one in results]


def settled() -> tuple[Agreement, dict[str, str]]:
    """The agreement, with all samples where the first ones do not show it, and the reasons."""
    results = stream.kept("operators_mps")
    if results is None:
        raise SystemExit("run benchmarks.calibration.operators --device mps first")
    results = again(results, compare(results).listed_only)
    return compare(results), {one["name"]: one["why"] for one in results}


def main() -> None:
    agreement, why = settled()
    for what, names in asdict(agreement).items():
        print(f"{what}: {len(names)}")
        if what.endswith("only"):
            for name in names:
                print(f"  {name}: {why[name][:150]}")


if __name__ == "__main__":
    main()
