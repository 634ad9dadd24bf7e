"""Run every calibration that needs no device, and write the numbers of docs/calibration.md: a quarter of an hour.

python -m benchmarks.calibration [--page]
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
)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", action="store_true", help="only write the page again, from what was kept")
    if not parser.parse_args().page:
        for script, device in WORK:
            subprocess.run([sys.executable, "-m", f"{HERE}.{script}", "--device", device], check=True)
        command = [sys.executable, "-m", f"{HERE}.operators", "--device", "cuda:1", "--engine", "python"]
        subprocess.run(command, check=True)
        for device in ("cuda:1", "mps", "xpu:1"):
            command = [sys.executable, "-m", f"{HERE}.probe", "--device", device, "--pretend"]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            page.keep_probe(device.split(":")[0], done.stdout)
    page.write()
    print(f"wrote {page.PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
