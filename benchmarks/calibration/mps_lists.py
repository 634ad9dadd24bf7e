"""The operators that pretend mps lacks, against the lists of PyTorch's own tests for mps.

The lists stand in `torch/testing/_internal/common_mps.py`, which the wheel ships, inside a condition that holds only on
a Mac: they are read, not run. More expected failures stand in the operator database itself.

Run `operators --device mps` first.

python -m benchmarks.calibration.mps_lists
"""

from __future__ import annotations

import ast
import importlib.util
from pathlib import Path

from benchmarks.calibration import stream

UNIMPLEMENTED = "UNIMPLEMENTED_XFAILLIST"
DOWNSTREAM = "ON_MPS_XFAILLIST"
Listed = dict[str, list[str] | None]


def lists() -> dict[str, Listed]:
    """Every list of expected failures: operator -> the dtypes that fail, or ``None`` for all."""
    spec = importlib.util.find_spec("torch")
    assert spec is not None
    assert spec.origin is not None
    file = Path(spec.origin).parent / "testing" / "_internal" / "common_mps.py"
    found: dict[str, Listed] = {}
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        target, value = _assigned(node)
        if isinstance(value, ast.Dict) and target.endswith("XFAILLIST"):
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


def compare(results: list[stream.Result]) -> dict[str, list[str]]:
    """The operators by agreement: in the list and refused, refused only, in the list only."""
    known = lists()
    table: dict[str, list[str]] = {"both": [], "downstream": [], "refused only": [], "listed only": []}
    for one in results:
        name, dtype = one["name"], one.get("dtype", "torch.float32")
        refused = "refused" in one.get("samples", [])
        if expected(known[UNIMPLEMENTED], name, dtype):
            table["both" if refused else "listed only"].append(name)
        elif refused:
            table["downstream" if expected(known[DOWNSTREAM], name, dtype) else "refused only"].append(name)
    return table


def main() -> None:
    results = stream.kept("operators_mps")
    if results is None:
        raise SystemExit("run benchmarks.calibration.operators --device mps first")
    why = {one["name"]: one["why"] for one in results}
    for kind, names in compare(results).items():
        print(f"{kind}: {len(names)}")
        if kind.endswith("only"):
            for name in names:
                print(f"  {name}: {why[name][:150]}")


if __name__ == "__main__":
    main()
