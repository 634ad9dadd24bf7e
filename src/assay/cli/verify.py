"""``assay verify``: whether a stored report is what it says: of itself, by its predictions, or by a second run."""

from __future__ import annotations

import json

import typer

from assay._atomic import Location, local_path, write_text
from assay.cli.options.reports import VerifyCommand
from assay.cli.output import print_as, write_then_show
from assay.errors import ConfigError, describe
from assay.report import Report
from assay.verify.device_file import is_device_file, verify_device_file
from assay.verify.file_level import verify_file
from assay.verify.result import Verification
from assay.verify.statement import statement_of


def run(options: VerifyCommand) -> None:
    """Verify a report, print the checks, and exit with 0 (verified), 1 (contradicted) or 2 (not enough evidence)."""
    result = _of_device(options) if is_device_file(options.report) else _of_report(options)
    raise typer.Exit(result.exit_code)


def _of_device(options: VerifyCommand) -> Verification:
    """The file of a device check: nothing is counted or run again."""
    given = [name for name in ("data", "model", "statement") if getattr(options, name)]
    if given:
        do = "Leave it out: the file of a device check is verified by itself"
        raise ConfigError(describe(f"--{given[0]}", "the file of a device check", "a report", do))
    result = Verification.of(*verify_device_file(options.report))
    print_as(result, options)
    return result


def _of_report(options: VerifyCommand) -> Verification:
    if options.statement is not None and not options.evaluator:
        do = "Add --evaluator, a URI such as https://example.org/team"
        raise ConfigError(describe("--statement", "no evaluator", "who ran the evaluation", do))
    report, checks = verify_file(options.report)
    if report is not None and options.model:
        from assay.cli.rerun import rerun

        checks += rerun(report, options)
    elif report is not None and options.data is not None:
        from assay.verify.recount import verify_recount

        names = ("preds", "target", "weights", "ids")
        columns = {name: getattr(options, name) for name in names if getattr(options, name)}
        checks += verify_recount(report, options.data, columns)
    title = str(options.report) if report is None else report.title
    result = Verification.of(title, checks)
    write_then_show(lambda: _statement(report, result, options), lambda: print_as(result, options))
    return result


def _statement(report: Report | None, result: Verification, options: VerifyCommand) -> list[Location]:
    """Write the statement of a report that passed, where one was asked for; of another report nothing is written."""
    if options.statement is None or report is None or result.exit_code:
        return []
    subject = None if options.subject is None else local_path("--subject", options.subject)
    file = local_path("report", options.report)
    statement = statement_of(report, file, result, options.evaluator, subject)
    return [write_text(options.statement, json.dumps(statement, indent=1) + "\n")]
