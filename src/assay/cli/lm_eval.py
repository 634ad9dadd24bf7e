"""``assay lm-eval``: a language model on tasks of lm-eval."""

from __future__ import annotations

from dataclasses import replace

from assay.cli.declaration import same_named
from assay.cli.loaders.models import model_of
from assay.cli.loaders.texts import tokenizer_of
from assay.cli.measurement import measure_and_show
from assay.cli.options.language_models import LmEvalCommand
from assay.report import Report


def run(options: LmEvalCommand) -> None:
    """Measure, write the report where a folder was named, and print it; of several processes the first one does."""
    measure_and_show(lambda: _measure(options), options)


def _measure(options: LmEvalCommand) -> Report:
    from assay.integrations import LmEvalModel, run_lm_eval

    named = model_of(options)
    model = LmEvalModel(named.model, **same_named(LmEvalModel, options, tokenizer=tokenizer_of(named)))
    arguments = same_named(run_lm_eval, options, title=options.title or named.name)
    report = run_lm_eval(model, options.tasks, **arguments)
    return replace(report, notes=(*report.notes, f"Model: {named.name} ({named.what})."))
