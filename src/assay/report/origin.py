"""What a report needs to be made again: the counts behind its values, and what made it."""

from __future__ import annotations

import json
import shlex
from dataclasses import field
from typing import Any

from assay._records import OPTIONAL, Record
from assay.errors import StateError, describe


class SectionCounts(Record):
    """What was counted of all samples of a section, as exact integers that do not depend on their order.

    Args:
        metrics: by name, the metrics as JSON: their classes with all fields.
        weighted: whether samples had weights.
        rows: how many samples were counted.
        sha256: the SHA-256 digest of the counts in their canonical form.
        packed: the counts, compressed, as base64; empty where they are too large for a report.
        n_resamples: how often the bootstrap of intervals drew; 0 without intervals.
        seed: of the groups that intervals are drawn from; 0 without intervals.
    """

    metrics: dict[str, str]
    weighted: bool
    rows: int
    sha256: str
    packed: str = ""
    n_resamples: int = 0
    seed: int = 0

    @property
    def interval_options(self) -> dict[str, Any]:
        """The options of a call that finds the same intervals, or none where none were found."""
        if not self.n_resamples:
            return {"confidence_level": None}
        return {"n_resamples": self.n_resamples, "seed": self.seed}


class ReportOrigin(Record):
    """What made a report. It does not say where: paths are shortened to names of files, and passwords are left out.

    Args:
        call: the function or command that made it: ``"evaluate"``, ``"score"``, or ``"merge"`` of parts of a table.
        command: the command line, where it was made by one.
        options: the options of the call as JSON, as far as they are plain values.
        commit: the git commit of the working directory; empty where there is no repository.
        dirty: whether files that git knows had been changed; None where that is not known.
        model: the SHA-256 digest of the parameters and buffers of the model; empty where it was not computed.
        data: by name, digests of the files that the data came from: ``"sha256:..."`` of all bytes, or ``"blake2b:..."``
            of some places of a large file.
        seed: of random numbers.
    """

    call: str
    command: tuple[str, ...] = ()
    options: str = "{}"
    commit: str = ""
    dirty: bool | None = None
    model: str = ""
    data: dict[str, str] = field(default_factory=dict)
    seed: int | None = field(default=None, metadata=OPTIONAL)

    def call_options(self) -> dict[str, Any]:
        """The options of the call.

        Raises:
            StateError: they are no options, as `options` was changed.
        """
        try:
            found = json.loads(self.options)
            return dict(found)
        except (ValueError, TypeError, RecursionError) as error:
            do = "Make the report again"
            raise StateError(
                describe("report.origin.options", repr(self.options)[:80], "options as JSON", do)
            ) from error

    def lines(self) -> tuple[tuple[str, str], ...]:
        """What a page says of it: names and lines, without those that are not known.

        Example:
            >>> origin = ReportOrigin("score", ("assay", "score", "my preds.parquet"), commit="3f91c2e" + 33 * "0")
            >>> dict(origin.lines())
            {'command': "assay score 'my preds.parquet'", 'git commit': '3f91c2e00000'}
        """
        found = {
            "command": shlex.join(self.command) or f"assay.{self.call}(...)",
            "model": f"sha256 {self.model[:_DIGITS]}" if self.model else "",
            "data": ", ".join(f"{name} ({_short(digest)})" for name, digest in self.data.items()),
            "git commit": self.commit[:_DIGITS] + (", with changed files" if self.commit and self.dirty else ""),
            "seed": "" if self.seed is None else str(self.seed),
        }
        return tuple((name, line) for name, line in found.items() if line)


_DIGITS = 12  # of a digest, that a page shows


def _short(digest: str) -> str:
    kind, _, digits = digest.rpartition(":")
    return f"{kind} {digits[:_DIGITS]}".strip()
