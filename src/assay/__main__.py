"""``python -m assay`` is ``assay``."""

from __future__ import annotations

from assay.cli import main

if __name__ == "__main__":
    main()
