"""``assay import``: what another tool wrote becomes a report."""

from __future__ import annotations

from pathlib import Path

from assay.cli._streams import write_then_show
from assay.errors import ConfigError, describe

TOOLS = ("lm-eval",)


def run(tool: str, path: Path, out: Path | None, title: str, as_json: bool) -> None:
    """Read what a tool wrote, write it as a report, and show it.

    Args:
        tool: which one.
        path: its file or folder.
        out: the file of the report.
        title: of the report; the model's name unless given.
        as_json: print the report as JSON instead.

    Raises:
        ConfigError: a tool that is not known, or no such file.
        StateError: a file that was cut short or is of something else.
        OSError: a file that cannot be read or written.
    """
    if tool not in TOOLS:
        raise ConfigError(describe("TOOL", repr(tool), f"one of {', '.join(TOOLS)}", "Name one of them"))
    from assay.integrations.lm_eval import read_lm_eval

    report = read_lm_eval(path, title)
    write_then_show(
        lambda: [] if out is None else [report.save(out)],
        lambda: print(report.to_json(), end="") if as_json else report.show(),
    )
