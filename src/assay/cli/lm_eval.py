"""``assay lm-eval``: a language model on tasks of lm-eval."""

from __future__ import annotations

from dataclasses import replace

from assay.cli.loaders.models import model_of
from assay.cli.loaders.texts import tokenizer_of
from assay.cli.measurement import measure_and_show
from assay.cli.options import LmEvalCommand
from assay.report import Report


def run(options: LmEvalCommand) -> None:
    """Measure, write the report where a folder was named, and print it; of several processes the first one does."""
    measure_and_show(lambda: _measure(options), options)


def _measure(options: LmEvalCommand) -> Report:
    from assay.integrations import LmEvalModel, run_lm_eval

    named = model_of(options)
    model = LmEvalModel(
        named.model,
        tokenizer_of(named),
        max_length=options.max_length,
        batch_size=options.batch_size,
        device=options.device,
    )
    report = run_lm_eval(
        model,
        options.tasks,
        include_path=options.include_path,
        num_fewshot=options.num_fewshot,
        limit=options.limit,
        chat_template=options.chat_template,
        seed=options.seed,
        resume=options.resume,
        run_id=options.run_id,
        mesh=options.mesh or None,
        title=options.title or named.name,
    )
    return replace(report, notes=(*report.notes, f"Model: {named.name} ({named.what})."))
