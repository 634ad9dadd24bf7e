"""Run every configuration with assay, and some with other libraries; write docs/meshes.md, or check that all are right.

`python -m benchmarks.meshes` writes the page; `--check` runs assay alone, and fails where something is not right.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import math
import sys
from pathlib import Path
from typing import Any

from benchmarks.meshes.cases import COMPARED, CONFIGURATIONS, case_of
from benchmarks.meshes.configuration import Configuration, label
from benchmarks.meshes.groups import KILLED, NO_END, results
from benchmarks.meshes.others import OTHERS, PRELOADED

PAGE = Path("docs/meshes.md")
PACKAGES = ("accelerate", "transformers", "lightning", "torchmetrics")
HEAD = """# One number under every parallelism

Tiny models whose parts lie on several processes, on gloo and the CPU. `python -m benchmarks.meshes` writes this page,
and `--check` fails where something is not right. Targets are the model's own predictions, every fifth of them replaced,
so the right value is known without any library. Right means that every process returned the same report with the right
value (perplexity: to 1e-6, as a sharded forward rounds otherwise), or, where there is no value, an error that says
what was found. A process that is killed or sleeps must end all others with a `RankError`. Nothing of it was run on
GPUs. What the names mean is in [evaluate.md](evaluate.md#models-that-are-shared-among-processes).
"""
SAME = 1e-6  # perplexity: the forward of a sharded model rounds otherwise


def verdict(each: Configuration, found: list[Any]) -> str:
    """What assay gave, in words; begins with "right" where it is."""
    living = [value for rank, value in enumerate(found) if rank not in each.dies]
    if NO_END in living:
        return "no end"
    if isinstance(each.right, str):
        if all(isinstance(value, str) and each.right in value for value in living):
            return "right: an error" if each.right == "RankError" else f"right: {_shown(each.right)}"
        return f"wrong: {living}"
    if any(isinstance(value, str) for value in living) or any(value != living[0] for value in living):
        return f"wrong: {living}"
    return f"right: {living[0][0]:.6g}" if math.isclose(living[0][0], each.right, rel_tol=SAME) else f"wrong: {living}"


def _shown(text: str) -> str:
    return text if text == "interrupted" else f"refused, “{text}”"


def of_other(found: list[Any]) -> str:
    """What another library gave on the first process."""
    first = found[0]
    if first == NO_END or NO_END in found:
        return "no end within 20 s"
    if isinstance(first, float):
        return f"{first:.4f}"
    return "the process ends" if first == KILLED else f"`{first.partition(':')[0]}`"


def page(verdicts: dict[str, str], others: dict[str, dict[str, str]]) -> str:
    """The page: one line for each configuration."""
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in PACKAGES)
    right = sum(text.startswith("right") for text in verdicts.values())
    lines = [
        HEAD,
        f"{right} of {len(verdicts)} configurations are right, on torch {importlib.metadata.version('torch')}.",
        "",
        "| processes | configuration, samples/batch | assay |",
        "|--:|---|---|",
    ]
    for name, text in verdicts.items():
        size, _, rest = name.partition(": ")
        lines.append(f"| {size} | {rest} | {text.removeprefix('right: ')} |")
    if others:
        lines += [
            "",
            "## Other libraries",
            "",
            "The same models and samples, in loops as their documentation has them:",
            f"{versions}.",
            "Models are given as they are, not through each library's own ways to shard: Accelerate's and Trainer's",
            "own tensor parallelism takes no CPU, and Lightning has `DDPStrategy`. Composer 0.32.1 requires",
            "torch 2.7.0, so it was not installed beside this one.",
            "",
            "| processes | configuration, samples/batch | right | " + " | ".join(OTHERS) + " |",
            "|--:|---|--:|" + "---|" * len(OTHERS),
        ]
        for name, given in others.items():
            size, _, rest = name.partition(": ")
            right_value = next(each.right for each in CONFIGURATIONS if label(each) == name)
            lines.append(f"| {size} | {rest} | {right_value:.4f} | " + " | ".join(given[key] for key in OTHERS) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="configurations whose name has this in it")
    parser.add_argument("--check", action="store_true", help="run assay alone, and write nothing")
    options = parser.parse_args()
    chosen = [each for each in CONFIGURATIONS if options.only in label(each)]
    compared = [] if options.check else [name for name in COMPARED if options.only in name]
    names = [label(each) for each in chosen] + [f"{name}@{library}" for name in compared for library in OTHERS]

    def told(text: str) -> None:
        print(text[:400], file=sys.stderr, flush=True)

    found = results([case_of(name) for name in names], case_of, told, PRELOADED if compared else ())
    verdicts = {label(each): verdict(each, found[label(each)]) for each in chosen}
    others = {name: {key: of_other(found[f"{name}@{key}"]) for key in OTHERS} for name in compared}
    if not options.only and not options.check:
        PAGE.write_text(page(verdicts, others), "utf-8")
    wrong = {name: text for name, text in verdicts.items() if not text.startswith("right")}
    for name, text in wrong.items():
        print(f"{name}: {text}")
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} right")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
