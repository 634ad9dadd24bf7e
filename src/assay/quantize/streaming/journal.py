"""What of a long piece of work is done, line by line, so that it can go on after a kill at any point."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from assay._atomic import write_text
from assay.errors import StateError, describe


@dataclass(frozen=True)
class WrittenWeight:
    """One weight that is written: the SHA-256 of its source, and of each tensor that was made from it."""

    name: str
    source: str
    tensors: Mapping[str, str]


class Journal:
    """A file whose first line is the job, and each further line one weight that is on the disk.

    Args:
        path: where it is.
        job: what must be the same to go on.

    Raises:
        StateError: it belongs to another job.
    """

    def __init__(self, path: Path, job: Mapping[str, Any]) -> None:
        self.path = path
        self.done: dict[str, WrittenWeight] = {}
        if not path.exists():
            write_text(path, json.dumps(dict(job), sort_keys=True) + "\n")
        whole, _, rest = path.read_bytes().rpartition(b"\n")
        if rest:  # a line that a kill cut short
            os.truncate(path, len(whole) + 1)
        do = "Go on as it was begun, or name another folder, or delete this one to start anew"
        try:
            first, *lines = (json.loads(line) for line in whole.decode().splitlines())
            self.done = {line["name"]: WrittenWeight(**line) for line in lines}
        except (ValueError, KeyError, TypeError) as error:
            raise StateError(describe(str(path), f"no journal ({error})", "its own lines", do)) from error
        if others := [name for name in job if first.get(name) != job[name]]:
            got = f"a job that was begun with another {', '.join(others)}"
            raise StateError(describe(str(path.parent), got, "the same job", do))

    def add(self, done: WrittenWeight) -> None:
        """Note what is on the disk now."""
        self.done[done.name] = done
        with open(self.path, "a", encoding="utf-8", newline="\n") as file:
            file.write(json.dumps(asdict(done)) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def forget(self, name: str) -> None:
        """What was written is not there any more: it is done again."""
        self.done.pop(name, None)

    def remove(self) -> None:
        """The work is done."""
        self.path.unlink(missing_ok=True)
