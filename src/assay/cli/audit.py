"""``assay audit``: device bugs of a program or of metrics, found without the device."""

from __future__ import annotations

import shlex
import sys

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from assay.audit.findings.result import Audit
from assay.audit.findings.rulebook import SEVERITIES, rules
from assay.audit.findings.sarif import save
from assay.audit.running.runner import AuditProgress as Step
from assay.audit.running.runner import audit
from assay.audit.watching.observations import COMPILING, MOVED, NOT_MOVED, USAGES
from assay.cli.loaders.python_objects import see_working_folder
from assay.cli.options.tools import AuditCommand
from assay.cli.output import write_then_show
from assay.errors import ConfigError, describe
from assay.render.terminal import show

FIRST = (
    "assay: compiling the engine of pretend devices first (once; a minute or two of CPU time; "
    "assay devices --prepare does it ahead of time)"
)
USAGE = {"moved": (MOVED,), "not-moved": (NOT_MOVED,), "both": USAGES}


def run(options: AuditCommand) -> None:
    """Audit, print, and exit with 0 (nothing found), 1 (findings) or 2 (could not be run)."""
    if options.list_rules:
        print_rules()
        return
    if not options.target:
        do = "Name it, as in assay audit train.py"
        raise ConfigError(describe("TARGET", "none", "a script, a module or a library of metrics", do))
    if options.parity:
        from assay.audit.parity.command import run as compare

        raise typer.Exit(compare(options.target, options.device, engine=options.engine, as_json=options.json))  # type: ignore[arg-type]
    if options.fail_on not in SEVERITIES:
        raise ConfigError(
            describe("--fail-on", options.fail_on, f"one of {', '.join(SEVERITIES)}", "Write --fail-on error")
        )
    if options.usage not in USAGE:
        raise ConfigError(describe("--usage", options.usage, f"one of {', '.join(USAGE)}", "Write --usage both"))
    see_working_folder()
    result = _audit(options)
    document = result.to_document(notes=options.notes or options.fail_on == "note")
    write_then_show(
        lambda: [] if options.sarif is None else [save(result, options.sarif)],
        lambda: print(result.to_json(), end="") if options.json else show(document, pipe_width=result.pipe_width),
    )
    raise typer.Exit(result.exit_code(options.fail_on))


def _audit(options: AuditCommand) -> Audit:
    with _Bars(options.device) as bars:
        return audit(
            options.target,
            options.device,
            usages=USAGE[options.usage],
            engine=options.engine,
            timeout=options.timeout,
            only=options.rules,
            without=options.ignore,
            arguments=_words(options.args),
            inputs=options.input,
            progress=bars.step,
        )


def _words(text: str) -> list[str]:
    """The arguments in ``--args``, as a shell takes them apart."""
    try:
        return shlex.split(text)
    except ValueError as error:  # a quotation that does not end
        raise ConfigError(
            describe("--args", f"{text} ({error})", "arguments as in a shell", "Close the quotation marks")
        ) from None


def print_rules() -> None:
    """Print every rule: its name, its severity and what it is."""
    width = max(map(len, rules()))
    for rule in rules().values():
        print(f"{rule.id:{width}}  {rule.severity:7}  {rule.title}")


class _Bars:
    """A bar for each device, on the error stream, where there is a terminal."""

    def __init__(self, on: tuple[str, ...]) -> None:
        console = Console(stderr=True, highlight=False)
        columns = (TextColumn("{task.description:8}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        self._progress = Progress(
            *columns,
            TimeElapsedColumn(),
            TextColumn("{task.fields[subject]}", style="dim"),
            console=console,
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._compiling = False
        self._tasks: dict[str, TaskID] = {
            device: self._progress.add_task(device, total=None, subject="starting") for device in on
        }

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def step(self, step: Step) -> None:
        """Move a device's bar; that the engine is compiled is reported where there is no terminal, too."""
        if step.subject == COMPILING and not self._compiling:
            self._compiling = True
            print(FIRST, file=sys.stderr, flush=True)
        subject = step.subject.rpartition(".")[2]
        self._progress.update(self._tasks[step.device], completed=step.done, total=step.total or None, subject=subject)
