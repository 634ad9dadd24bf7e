"""Run every calibration that needs no device, and write the numbers of docs/calibration.md: a quarter of an hour.

A run that was interrupted goes on where it ended.

python -m benchmarks.calibration [--page] [--only dtypes]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.calibration import page

HERE = "benchmarks.calibration"
WORK = (
    *((script, device) for device in ("cuda:1", "mps", "xpu:1") for script in ("operators", "modules", "errors")),
    ("dtypes", "cuda:1"),
    ("dtypes", "xpu:1"),
    ("dtypes", "mps"),
    ("operators", "cuda:1", "--engine", "python"),
)


PROBED = ("cuda:1", "mps", "xpu:1")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="only write the page again, from what was kept")
    parser.add_argument("--only", choices=tuple(page.FED_BY), help="run one script, and write its sections")
    asked = parser.parse_args()
    if not asked.page:
        run(asked.only)
    page.write(sections=page.FED_BY.get(asked.only, ()))
    print(f"wrote {page.PAGE}")
    return 0


def run(only: str | None) -> None:
    for script, device, *engine in WORK:
        if only in (None, script):
            subprocess.run([sys.executable, "-m", f"{HERE}.{script}", "--device", device, *engine], check=True)
    for device in PROBED if only in (None, "probe") else ():
        command = [sys.executable, "-m", f"{HERE}.probe", "--device", device, "--pretend"]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        page.keep_probe(device.split(":")[0], done.stdout)


if __name__ == "__main__":
    sys.exit(main())
