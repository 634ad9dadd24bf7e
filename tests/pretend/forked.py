"""Run pieces of code each in a process of its own, forked from one that has torch: ``forked.py < cases.json``.

A case is ``{name: code}``. Prints ``{name: [exit code, negative for a signal; what the code printed]}`` as JSON.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import sys
import tempfile
import traceback
import warnings

LIMIT_S = 120


def run(code: str) -> tuple[int, str]:
    """The exit code and the output of a piece of code."""
    with tempfile.TemporaryFile() as output:
        child = os.fork()
        if child == 0:
            os.setsid()
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            signal.alarm(LIMIT_S)
            status = 1
            try:
                exec(compile(code, "case", "exec"), {"__name__": "case"})
                status = 0
            except BaseException:
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it left behind
        output.seek(0)
        return status, output.read().decode(errors="replace")


if __name__ == "__main__":
    for module in ("torch_patches", "python_engine.engine", "native_engine.engine"):  # imported once, not by each case
        importlib.import_module(f"assay.pretend.{module}")
    warnings.simplefilter("ignore")
    print(json.dumps({name: run(code) for name, code in json.load(sys.stdin).items()}))
