"""Run the examples on this Python and on another one, and verify the reports of each by the other.

`python -m benchmarks.examples_elsewhere --python OTHER/bin/python` runs each example twice. A report is verified by its
file (`assay verify`), and compared with the one that the same example gave on the other side, as a second run.
An example that does not run there, such as one whose packages need another torch, is named; what it gave here is
verified there all the same. Exit code 1: a report is contradicted, an example does not run here, or there were no
reports.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
VERSIONS = "import platform, torch; print(f'Python {platform.python_version()}, torch {torch.__version__}')"
VERIFY = """
import json, sys
from assay.verify import Verification, verify_by_report, verify_file
report, checks = verify_file(sys.argv[1])
if report is not None and len(sys.argv) > 2:
    again, _ = verify_file(sys.argv[2])
    if len(report.sections) == len(again.sections) == 1:
        checks += verify_by_report(report, again, "rerun")
result = Verification.of("", checks)
found = [f"{each.what}: {each.found}" for each in checks if each.outcome == "fail" or each.is_needed]
print(json.dumps([result.exit_code, found]))
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", required=True, help="the other Python, which has assay's packages")
    parser.add_argument("--only", default="", help="a part of the names of the examples")
    options = parser.parse_args()
    pythons = {"here": sys.executable, "there": options.python}
    versions = {side: _run(python, ["-c", VERSIONS]).stdout.strip() for side, python in pythons.items()}
    print(f"{versions['here']} and {versions['there']}")
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        for example in [each for each in sorted((ROOT / "examples").glob("*.py")) if options.only in each.name]:
            folders = {side: Path(name) / side / example.stem for side in pythons}
            for side, python in pythons.items():
                if not _made(python, example, folders[side]):
                    outcomes[f"did not run {side}"] += 1
                    print(f"{example.name}: does not run {side}")
            for side, other in (("here", "there"), ("there", "here")):
                for report in sorted(folders[side].glob("*.json")):
                    again = folders[other] / report.name
                    arguments = [str(report), *([str(again)] if again.exists() else [])]
                    code, found = json.loads(_run(pythons[other], ["-c", VERIFY, *arguments]).stdout)
                    outcome = ("verified", "contradicted", "not enough evidence")[code]
                    outcomes[outcome] += 1
                    print(f"{report.stem}, made {side}: {outcome} {'; '.join(found)[:300]}".rstrip())
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())) or "no reports")
    return int(not outcomes["verified"] or bool(outcomes["contradicted"] or outcomes["did not run here"]))


def _made(python: str, example: Path, folder: Path) -> bool:
    """Run an example as its first lines say, and keep its reports."""
    folder.mkdir(parents=True)
    words = example.read_text("utf-8").split('"""')[1].strip().splitlines()[-1].split()
    runners = {"python": [], "torchrun": ["-m", "torch.distributed.run", "--standalone"]}
    if words[0] not in runners:
        return True
    return _run(python, [*runners[words[0]], *words[1:]], folder).returncode == 0


def _run(python: str, arguments: list[str], reports: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = [str(ROOT / "src"), *([str(HERE)] if reports else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path), "ASSAY_EXAMPLE_REPORTS": str(reports or "")}
    done = subprocess.run([python, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return done


if __name__ == "__main__":
    sys.exit(main())
