"""``assay migrate``: what changes in files that use TorchMetrics, Ignite or TorchEval, as a diff and as notes."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from assay.cli.options.tools import MigrateCommand
from assay.errors import plural
from assay.migrate import FileMigration, Note, migrate, write


def run(options: MigrateCommand) -> None:
    """Show what changes, and write it if asked."""
    known = {name: getattr(options, name) for name in ("num_classes", "num_labels", "num_outputs")}
    migrations = []
    for each in migrate(options.path, {name: value for name, value in known.items() if value is not None}):
        if options.write:
            write(each)
        if not options.json:
            print(_diff(each), end="")
        migrations.append(each)
    if options.json:
        print(json.dumps(_to_json(migrations, options.write), indent=2))
    else:
        _show_notes(migrations)
        print(_summary(migrations, options.write), file=sys.stderr)
    if any(each.result is None for each in migrations):
        raise typer.Exit(2)
    if any(note.kind == "todo" for _, note in _notes(migrations)):
        raise typer.Exit(1)


def _notes(migrations: list[FileMigration]) -> list[tuple[Path, Note]]:
    return [(each.path, note) for each in migrations if each.result is not None for note in each.result.notes]


def _to_json(migrations: list[FileMigration], written: bool) -> dict[str, Any]:
    files = []
    for each in migrations:
        notes = [] if each.result is None else [asdict(note) for note in each.result.notes]
        about = {"path": str(each.path), "changed": each.changed, "diff": each.diff(), "notes": notes}
        files.append({**about, "error": each.error})
    return {"written": written, "files": files}


_COLOURS = {"+": typer.colors.GREEN, "-": typer.colors.RED, "@": typer.colors.CYAN}


def _diff(of: FileMigration) -> str:
    text = of.diff()
    if not sys.stdout.isatty():
        return text
    return "".join(typer.style(line, fg=_COLOURS.get(line[0])) for line in text.splitlines(keepends=True))


_KINDS = {"import": "or change the import", "todo": "left to you", "check": "changed; look at it", "kept": "kept"}


def _show_notes(migrations: list[FileMigration]) -> None:
    for number, (path, note) in enumerate(_notes(migrations), 1):
        print(f"{number}. {path}:{note.line}: {_KINDS[note.kind]}: {note.reason}.")
        if note.write:
            print(f"   instead: {note.write}")
    for each in migrations:
        if each.error:
            print(f"assay: {each.path} {each.error}", file=sys.stderr)


def _summary(migrations: list[FileMigration], written: bool) -> str:
    changed, notes = sum(each.changed for each in migrations), [note for _, note in _notes(migrations)]
    todo = sum(note.kind == "todo" for note in notes)
    verb = "changed" if written else "would change"
    ask = "" if written or not changed else " Nothing was written; --write does."
    counts = f"{plural(len(migrations), 'file')}: {changed} {verb}, {plural(todo, 'place')} left to you."
    return counts + ask
