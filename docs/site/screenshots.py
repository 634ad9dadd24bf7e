"""Pictures of the page of `make demo`, light and dark: `python docs/site/screenshots.py assay-demo/report.html`.

Needs Chromium.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).parents[1] / "images"
SCHEMES = {"report.png": 1, "report-dark.png": 0}
"""Each picture with the number that Chromium gives the colour scheme."""
SIZE = "1200,1300"


def browser() -> str | None:
    """The program of Chromium, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def take(browser: str, page: Path, scheme: int, path: Path) -> None:
    """Write the upper part of a page as a PNG of 256 colours."""
    with tempfile.TemporaryDirectory() as folder:
        shot = Path(folder, "shot.png")
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=5000"]
        options += [f"--user-data-dir={folder}", f"--window-size={SIZE}", f"--screenshot={shot}"]
        options += [f"--blink-settings=preferredColorScheme={scheme}", page.resolve().as_uri()]
        subprocess.run([browser, *options], check=True, capture_output=True)
        Image.open(shot).convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    program = browser()
    if program is None:
        sys.exit("screenshots.py: got no Chromium, expected chromium or google-chrome on PATH. Install it.")
    for name, scheme in SCHEMES.items():
        take(program, Path(sys.argv[1]), scheme, IMAGES / name)
