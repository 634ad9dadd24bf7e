"""What a report records of the command that made it: the command line, and its options as plain values."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from assay._remote import without_password
from assay.cli.options.measurement import EvaluateCommand

EVALUATE = "assay evaluate"
NAMED_BY_THE_CALLER = ("model", "data", "model_factory", "allow_code", "device", "metrics")
"""Options that say what is run: whoever verifies a report names them."""
_OUTPUTS = ("out", "verbose", "json", "config", "title", "resume", "run_id", "variant", "checkpoint_every")
_SHARED = ("num_classes", "num_labels", "logits")  # the descriptions of the metrics have them


def command_line() -> tuple[str, ...]:
    """The command line of this process, if it is one of assay; without passwords in URLs."""
    name = Path(sys.argv[0]).name if sys.argv else ""
    if name not in ("assay", "assay.exe", "__main__.py"):
        return ()
    return ("assay", *(without_password(each) if "://" in each else each for each in sys.argv[1:]))


def recorded_options(options: EvaluateCommand) -> str:
    """The options of a command that are not their defaults, but for those that say what is run, and where it goes."""
    found: dict[str, Any] = {}
    for each in dataclasses.fields(options):
        value = getattr(options, each.name)
        is_named = each.name in (*NAMED_BY_THE_CALLER, *_OUTPUTS, *_SHARED)
        if not is_named and value != each.default and value not in (None, ""):
            found[each.name] = value
    return json.dumps(found, sort_keys=True)
