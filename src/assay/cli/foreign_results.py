"""``assay import``: the results of another tool become a report."""

from __future__ import annotations

from assay.cli.options.reports import ImportCommand
from assay.cli.output import write_and_print
from assay.errors import ConfigError, describe

TOOLS = ("inspect", "lighteval", "lm-eval")


def run(options: ImportCommand) -> None:
    """Read the results of a tool, write them as a report, and show it."""
    if options.tool not in TOOLS:
        raise ConfigError(describe("TOOL", repr(options.tool), f"one of {', '.join(TOOLS)}", "Write lm-eval"))
    from assay import integrations

    readers = {
        "inspect": integrations.read_inspect,
        "lighteval": integrations.read_lighteval,
        "lm-eval": integrations.read_lm_eval,
    }
    report = readers[options.tool](options.path, options.title)
    write_and_print(report, options)
