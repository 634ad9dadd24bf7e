"""lm-eval: tasks on a language model become a report, the same on every process."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch

from assay import __version__
from assay.errors import AssayWarning, ConfigError, describe
from assay.evaluation.model.data_parallel import broadcast_buffers, buffers_of_rank_0
from assay.evaluation.processes.join import companions_of, connected, hello, join
from assay.evaluation.processes.ranks import TIMEOUT_S, Ranks, process_group
from assay.evaluation.resume.identity import Identity
from assay.evaluation.resume.termination import saves_on_sigterm
from assay.integrations.lm_eval.answers import AnswerContent, AnswerStore
from assay.integrations.lm_eval.logged_results import read_lm_eval
from assay.integrations.lm_eval.model import PURPOSE, LmEvalModel
from assay.integrations.lm_eval.processes import RequestProcesses
from assay.integrations.optional_packages import import_package
from assay.report import Report

BOOTSTRAP = 1000
"""Resamples of metrics that are no mean over samples; the others have closed-form intervals."""


def run_lm_eval(
    model: LmEvalModel,
    tasks: Sequence[str],
    *,
    include_path: str | os.PathLike[str] | None = None,
    num_fewshot: int | None = None,
    limit: int | None = None,
    chat_template: bool = False,
    seed: int = 0,
    resume: str | os.PathLike[str] | None = None,
    run_id: str | None = None,
    mesh: Any = None,
    data_group: Any = None,
    rank_timeout_s: float = TIMEOUT_S,
    title: str = "lm-eval",
) -> Report:
    """Measure a language model on tasks of lm-eval; a report with a section a task, and its samples.

    On several processes each answers a part of the requests, in the batches of one process, so the report is the same
    on all of them and has the bits of one process. A model may be shared among them, as in `assay.evaluate`.

    Nothing is downloaded unless the environment says `HF_HUB_OFFLINE=0`: the data of a task are local files, or those
    that the library `datasets` has stored before.

    Args:
        model: the model.
        tasks: their names.
        include_path: a folder with tasks of one's own as YAML.
        num_fewshot: how many examples stand in a prompt; by default as the task says.
        limit: measure this many samples of each task only.
        chat_template: give each prompt the form of a conversation.
        seed: of the examples in a prompt.
        resume: a folder for answers; a run that is killed resumes from those in it.
        run_id: with `resume`, a name for parts of the model that have no digest; as in `assay.evaluate`.
        mesh: of a model that is shared among processes; as in `assay.evaluate`, and so are the following two.
        data_group: the processes with other requests.
        rank_timeout_s: how long to wait for a process.
        title: of the report.

    Returns:
        What `read_lm_eval` makes of the results, with warnings as notes; `assay.report.compare` pairs two by sample.

    Raises:
        ConfigError: there is no such task, or its data are not available; or processes have other requests or models.
        StateError: the answers in the folder are of another model, of other tasks, prompts or data, or are damaged.
        InvalidValuesError: log likelihoods are NaN or infinite; the message has how many of each task.
        RankError: another process failed or is gone.
    """
    asked = {
        "num_fewshot": num_fewshot,
        "limit": limit,
        "apply_chat_template": chat_template,
        "fewshot_random_seed": seed,
    }
    run = {
        "tasks": ", ".join(tasks),
        "num_fewshot": str(num_fewshot),
        "limit": str(limit),
        "chat_template": str(chat_template),
        "seed": str(seed),
    }
    managers: list[Any] = []
    with process_group(), Ranks(rank_timeout_s) as ranks:
        ranks.gather(lambda: managers.append(_task_manager(tasks, include_path)))
        with (
            warnings.catch_warnings(record=True) as caught,
            _together(model, mesh, data_group, ranks),
            _resumed(model, resume, run_id, run, ranks),
        ):
            warnings.simplefilter("always")
            report = _measured(model, tasks, managers[0], title, asked, ranks.own == 0)
        notes = dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, AssayWarning))
        report = None if report is None else replace(report, notes=(*report.notes, *notes))
        ranks.meet()
        (found,) = (each for each in ranks.gather(lambda: report) if each is not None)
        return found


def _task_manager(tasks: Sequence[str], include_path: str | os.PathLike[str] | None) -> Any:
    """What finds tasks by their names.

    Raises:
        ConfigError: there is no such folder or task.
    """
    if include_path is not None and not os.path.isdir(include_path):
        got = f"{os.fspath(include_path)}, which is no folder"
        raise ConfigError(describe("include_path", got, "a folder with tasks as YAML", "Check the path"))
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        os.environ.setdefault(name, "1")
    manager = import_package("lm_eval.tasks", PURPOSE).TaskManager(
        include_path=None if include_path is None else str(include_path)
    )
    if unknown := [name for name in tasks if name not in manager.all_tasks]:
        do = "Check the spelling with lm_eval ls tasks, or name the folder of its YAML with include_path"
        raise ConfigError(describe("tasks", repr(unknown[0]), "tasks that lm-eval has", do))
    return manager


def _measured(
    model: Any, tasks: Sequence[str], manager: Any, title: str, asked: Mapping[str, Any], is_first: bool
) -> Report | None:
    """Answer what the tasks ask; the report on the first process."""
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    evaluator = import_package("lm_eval", PURPOSE)
    with tempfile.TemporaryDirectory() as folder, _local_rank("0" if is_first else os.environ.get("LOCAL_RANK")):
        tracker = import_package("lm_eval.loggers", PURPOSE).EvaluationTracker(output_path=folder)
        results = evaluator.simple_evaluate(
            model=model,
            tasks=[*tasks],
            task_manager=manager,
            evaluation_tracker=tracker,
            bootstrap_iters=BOOTSTRAP if is_first else 0,
            **asked,
        )
        if not is_first:
            return None
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in results["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])
        return read_lm_eval(folder, title)


@contextmanager
def _local_rank(number: str | None) -> Iterator[None]:
    """The number of this process on its machine, by which lm-eval decides who has results."""
    before = os.environ.get("LOCAL_RANK")
    _set_local_rank(number)
    try:
        yield
    finally:
        _set_local_rank(before)


def _set_local_rank(number: str | None) -> None:
    if number is None:
        os.environ.pop("LOCAL_RANK", None)
    else:
        os.environ["LOCAL_RANK"] = number


@contextmanager
def _together(model: Any, mesh: Any, data_group: Any, ranks: Ranks) -> Iterator[None]:
    """The model answers with the other processes; one of lm-eval's own shares out requests by itself."""
    if ranks.alone or not isinstance(model, LmEvalModel):
        yield
        return
    without = buffers_of_rank_0(model.given)
    everyone = ranks.gather(lambda: hello(model.model, mesh, data_group, ranks, without))
    join([each for each in everyone if each is not None], ranks)
    broadcast_buffers(model.given)
    companions = companions_of(model.model, mesh, data_group, ranks)
    with connected(companions, ranks):
        model.processes = RequestProcesses(ranks, companions)
        try:
            yield
        finally:
            model.processes = RequestProcesses()


@contextmanager
def _resumed(
    model: LmEvalModel, resume: str | os.PathLike[str] | None, run_id: str | None, run: Mapping[str, str], ranks: Ranks
) -> Iterator[None]:
    """The model has the answers that are in a folder, and adds its own; of several processes the first one writes."""
    if resume is None:
        yield
        return
    identity = Identity(run_id)
    digest = identity.of_model(model.model, ranks)
    run = {
        "assay": __version__,
        "torch": torch.__version__,
        "lm_eval": str(import_package("lm_eval", PURPOSE).__version__),
        "model": digest if isinstance(digest, str) else ", ".join(digest),
        "tokenizer": identity.digest(model.tokenizer, "tokenizer"),
        "max_length": str(model.max_length),
        "run_id": str(run_id),
        **run,
    }
    stores: list[AnswerStore] = []

    def opened() -> AnswerContent | None:
        stores.append(AnswerStore(resume if ranks.own == 0 else None, run))
        return stores[0].content if ranks.own == 0 else None

    (content,) = (each for each in ranks.gather(opened) if each is not None)
    stores[0].content = content
    with saves_on_sigterm(), stores[0] as model.answers:
        try:
            yield
        finally:
            model.answers = None
