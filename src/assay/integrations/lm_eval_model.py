"""lm-eval: a language model as one of lm-eval's, and a report of its tasks; what a task asks is said by lm-eval."""

from __future__ import annotations

import logging
import math
import os
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from assay import __version__
from assay.devices.assign import assign
from assay.devices.placement import to_host
from assay.errors import AssayWarning, ConfigError, InputError, InvalidValuesWarning, describe, warn
from assay.evaluation.model.data_parallel import unwrapped
from assay.evaluation.model.forward import homes, ready
from assay.evaluation.model.pipelines import as_pipeline
from assay.evaluation.processes.links import SAME, links_of
from assay.evaluation.processes.reachable import modules_of
from assay.evaluation.resume.identity import Identity
from assay.evaluation.resume.termination import saves_on_sigterm
from assay.integrations.lm_eval import read_lm_eval
from assay.integrations.lm_eval_answers import AnswerStore, digest_of
from assay.integrations.lm_eval_samples import check_finite
from assay.integrations.optional_packages import import_package
from assay.language.causal import CausalModel, positions_of, vocabulary_of
from assay.language.conversation import ChatTemplate, Message
from assay.language.generation import generate
from assay.language.losses import check_vocabulary
from assay.language.scoring import BATCH_SIZE
from assay.language.tokens import ByteTokenizer, Tokenizer
from assay.progress import ProgressBar
from assay.report import Report

_PURPOSE = "its tasks"
_BASE: Any = import_package("lm_eval.api.model", _PURPOSE).TemplateLM
BOOTSTRAP = 1000
"""Resamples of metrics that are no mean over samples; the others have closed-form intervals."""
MAX_LENGTH, MAX_NEW_TOKENS = 2048, 256  # where neither model nor task says: those of lm-eval
NEWLINE = 10  # what stands before a text of bytes

Span = tuple[tuple[str, str] | None, list[int], list[int]]
"""A request, the tokens before, and the tokens whose likelihood is computed."""


class LmEvalModel(_BASE):  # type: ignore[misc]
    """A language model that lm-eval's tasks measure: any module, with floats or quantized weights.

    The log likelihood of a text is the exact sum of those of its tokens, each computed in float32, rounded once to
    float64; it does not depend on the order of requests. Texts, tokens and windows are those of lm-eval's own `hf`.

    Args:
        model: gives logits `(B, T, V)` for token ids `(B, T)`.
        tokenizer: makes tokens of text; bytes by default.
        max_length: how many tokens the model is given at most; by default what it can hold, else 2,048.
        batch_size: requests at once.
        device: where to run; as in `assay.evaluate`.

    Raises:
        ConfigError: more tokens than the model can hold, or processes have parts of the model.
        MissingDependencyError: lm-eval is not installed.

    Source: Gao et al., The Language Model Evaluation Harness; `models/huggingface.py` of 0.4.13.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        tokenizer: Tokenizer | None = None,
        *,
        max_length: int | None = None,
        batch_size: int = BATCH_SIZE,
        device: str | torch.device = "auto",
    ) -> None:
        super().__init__()
        _check_whole(model)
        positions = positions_of(model)
        if max_length is not None and positions is not None and max_length > positions:
            do = f"Pass at most max_length={positions}"
            raise ConfigError(describe("max_length", max_length, f"what the model can hold, {positions} tokens", do))
        self.model, self.tokenizer = model, tokenizer or ByteTokenizer()
        self.max_length = max_length or positions or MAX_LENGTH
        self.batch_size = batch_size
        self._device = assign(device, homes(model)).device.value
        self.answers: AnswerStore | None = None
        """Where answers are kept, so that a run that is killed resumes; None to keep none."""

    @property
    def eot_token_id(self) -> int | None:
        """The token that ends a text."""
        return self.tokenizer.stop

    @property
    def prefix_token_id(self) -> int:
        """The token before a text that has none: that of its beginning, else that of its end; of bytes a line end."""
        begin = getattr(self.tokenizer, "begin", None)
        known = [*self.tokenizer.start[:1], *(each for each in (begin, self.tokenizer.stop) if each is not None)]
        return known[0] if known else NEWLINE

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        """The tokens of a text, after those of a beginning where the tokenizer has some."""
        ids, start = self.tokenizer.encode(string), [*self.tokenizer.start]
        return ids if add_special_tokens is False or ids[: len(start)] == start else [*start, *ids]

    def apply_chat_template(self, chat_history: list[Message], add_generation_prompt: bool = True) -> str:
        """Messages as one text."""
        return self._template.chat_text(chat_history, is_open=not add_generation_prompt)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """The chat template, of which lm-eval logs the hash."""
        return self._template.chat_template if chat_template else None

    @property
    def tokenizer_name(self) -> str:
        return type(self.tokenizer).__name__

    @property
    def _template(self) -> ChatTemplate:
        if isinstance(self.tokenizer, ChatTemplate) and self.tokenizer.chat_template:
            return self.tokenizer
        do = "Measure without --chat-template, or add chat_template.jinja to the folder"
        raise ConfigError(describe("chat template", "none", "one of the tokenizer", do))

    def loglikelihood(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[tuple[float, bool]]:
        """The log likelihood of each continuation, and whether it is the most probable one.

        Raises:
            InvalidValuesError: log likelihoods are NaN or infinite, as those of logits that are.
        """
        answers: list[tuple[float, bool]] = super().loglikelihood(requests, disable_tqdm)
        _check_finite(requests, [likelihood for likelihood, _ in answers])
        return answers

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """The log likelihood of each whole text, in windows beside each other as lm-eval cuts them.

        Raises:
            InvalidValuesError: log likelihoods are NaN or infinite, as those of logits that are.
        """
        utils = import_package("lm_eval.utils", _PURPOSE)
        spans: list[Span] = []
        owners: list[int] = []
        for number, request in enumerate(requests):
            (text,) = request.args
            ids = self.tok_encode(text)
            windows = utils.get_rolling_token_windows(ids, self.prefix_token_id, self.max_length, context_len=1)
            for window in windows:
                spans.append((None, *utils.make_disjoint_window(window)))
                owners.append(number)
        parts: list[list[float]] = [[] for _ in requests]
        for owner, (likelihood, _) in zip(owners, self._loglikelihood_tokens(spans), strict=True):
            parts[owner].append(likelihood)
        sums = [_sum(each) for each in parts]
        _check_finite(requests, sums)
        for request, likelihood in zip(requests, sums, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, likelihood)
        return sums

    def _loglikelihood_tokens(self, requests: Sequence[Span], **_: Any) -> list[tuple[float, bool]]:
        """The log likelihood of the tokens of each request, and whether each is the most probable one."""
        self._check(requests)
        digests = [digest_of([*before], [*after]) for _, before, after in requests]
        answers = self.answers or AnswerStore()
        answers.begin("loglikelihood_rolling" if requests and requests[0][0] is None else "loglikelihood", digests)
        order = sorted(range(len(requests)), key=lambda k: -len(requests[k][1]) - len(requests[k][2]))
        with (
            ProgressBar("Log likelihoods", len(requests)) as bar,
            ready(self.model, self._device),
            torch.inference_mode(),
        ):
            for k in range(0, len(order), self.batch_size):
                batch = order[k : k + self.batch_size]
                if any(digests[number] not in answers.likelihoods for number in batch):
                    scores = self._scores([requests[number] for number in batch])  # whole batches, for the same bits
                    answers.add_likelihoods([digests[number] for number in batch], scores)
                for number in batch:
                    if (request := requests[number][0]) is not None:
                        result = answers.likelihoods[digests[number]]
                        self.cache_hook.add_partial("loglikelihood", request, result)
                bar.update(advance=len(batch))
        return [answers.likelihoods[digest] for digest in digests]

    def _check(self, requests: Sequence[Span]) -> None:
        """Raise where there is nothing before a text or a token is none of the model's; warn where a text is cut."""
        largest = max((max(before + after) for _, before, after in requests), default=0)
        check_vocabulary(largest, vocabulary_of(self.model) or largest + 1)
        if any(len(after) > self.max_length for _, _, after in requests):
            got = f"a continuation of {max(len(after) for _, _, after in requests):,} tokens"
            do = "Choose a model that holds more, or another task"
            raise InputError(describe("request", got, f"at most {self.max_length:,}, what the model holds", do))
        cut = sum(len(before) + len(after) - 1 > self.max_length for _, before, after in requests)
        if cut:
            got = f"{cut:,} of {len(requests):,} texts longer than {self.max_length:,} tokens, cut at their beginning"
            do = "Use fewer examples in the prompt (--num-fewshot)"
            warn(describe("requests", got, "what the model holds", do), InvalidValuesWarning)

    def _scores(self, spans: Sequence[Span]) -> Iterator[tuple[float, bool]]:
        """Those of some requests of about the same length; after the shorter ones stands what no token looks at."""
        rows = [(before + after)[:-1][-self.max_length :] for _, before, after in spans]
        longest = max(map(len, rows))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=self._device)
        logits = CausalModel(self.model)(ids)
        for row, (_, _, after), scores in zip(rows, spans, logits, strict=True):
            yield _likelihood(scores[len(row) - len(after) : len(row)], torch.tensor(after, device=scores.device))

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """How the model continues each text, up to one of some strings."""
        settings = import_package("lm_eval.models.utils", _PURPOSE).normalize_gen_kwargs
        asked = [
            (context, dict(settings(given, MAX_NEW_TOKENS))) for context, given in (each.args for each in requests)
        ]
        digests = [digest_of(*each) for each in asked]
        answers = self.answers or AnswerStore()
        answers.begin("generate_until", digests)
        texts = []
        with ProgressBar("Generating", len(requests)) as bar:
            for request, digest, each in zip(requests, digests, asked, strict=True):
                if digest not in answers.texts:
                    answers.add_text(digest, self._generate(*each))
                texts.append(answers.texts[digest])
                self.cache_hook.add_partial("generate_until", request.args, texts[-1])
                bar.update(advance=1)
        return texts

    def _generate(self, context: str, settings: dict[str, Any]) -> str:
        count, until = settings.pop("max_gen_toks"), settings.pop("until", [])
        settings.pop("do_sample", None)  # the temperature says it
        how = {name: settings.pop(name) for name in ("temperature", "top_k") if name in settings}
        if settings:
            do = "Take these out of generation_kwargs of the task"
            expected = "until, max_gen_toks, do_sample, temperature, top_k"
            raise ConfigError(describe("generation_kwargs", ", ".join(settings), expected, do))
        room = self.max_length - count
        if room < 1:
            got, do = f"{count} new tokens", "Choose a model that holds more, or fewer new tokens"
            raise ConfigError(describe("max_gen_toks", got, f"fewer than the {self.max_length} of the model", do))
        ids = self.tok_encode(context)[-room:]
        until = [until] if isinstance(until, str) else until
        return generate(self.model, ids, count, tokenizer=self.tokenizer, until=until, device=self._device, **how).text


def _check_whole(model: Any) -> None:
    """Raise where other processes have parts of a model: lm-eval asks each process at its own time."""
    modules = modules_of(as_pipeline(unwrapped(model)))
    links = links_of(modules, unknown=SAME)
    if links.any:
        got = f"a model whose forward communicates with other processes: {', '.join(links.found)}"
        do = "Load it on one process (on several devices with device_map=), or measure assay.language.perplexity"
        raise ConfigError(describe("model", got, "one that is whole on this process", do))


def _likelihood(scores: Tensor, labels: Tensor) -> tuple[float, bool]:
    """The sum of the log probabilities of labels `(T,)` by logits `(T, V)`, and whether each is the largest."""
    wide = torch.float64 if scores.dtype == torch.float64 else torch.float32
    logs = scores.log_softmax(1, dtype=wide).gather(1, labels[:, None])[:, 0]
    is_greedy = torch.eq(scores.argmax(1), labels).all()
    return _sum(to_host(logs).tolist()), bool(to_host(is_greedy))


def _sum(numbers: list[float]) -> float:
    """The exact sum, rounded once; NaN where infinities of both signs meet, for which `math.fsum` raises."""
    return math.fsum(numbers) if all(map(math.isfinite, numbers)) else sum(numbers)


def _check_finite(requests: Sequence[Any], likelihoods: Sequence[float]) -> None:
    """Raise where answers are not finite, with how many each task has."""
    tasks = [str(getattr(each, "task_name", None) or "no task") for each in requests]
    totals = Counter(tasks)
    bad = Counter(task for task, each in zip(tasks, likelihoods, strict=True) if not math.isfinite(each))
    check_finite({task: (bad[task], total) for task, total in totals.items()}, "requests")


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
    title: str = "lm-eval",
) -> Report:
    """Measure a language model on tasks of lm-eval; a report with a section a task, and its samples.

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
        title: of the report.

    Returns:
        What `read_lm_eval` makes of the results, with warnings as notes; `assay.report.compare` pairs two by sample.

    Raises:
        ConfigError: there is no such task, or its data are not available.
        StateError: the answers in the folder are of another model, of other tasks, prompts or data, or are damaged.
        InvalidValuesError: log likelihoods are NaN or infinite; the message has how many of each task.
    """
    if include_path is not None and not os.path.isdir(include_path):
        got = f"{os.fspath(include_path)}, which is no folder"
        raise ConfigError(describe("include_path", got, "a folder with tasks as YAML", "Check the path"))
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        os.environ.setdefault(name, "1")
    evaluator = import_package("lm_eval", _PURPOSE)
    manager = import_package("lm_eval.tasks", _PURPOSE).TaskManager(
        include_path=None if include_path is None else str(include_path)
    )
    logging.getLogger("lm_eval").setLevel(logging.ERROR)
    if unknown := [name for name in tasks if name not in manager.all_tasks]:
        do = "Check the spelling with lm_eval ls tasks, or name the folder of its YAML with include_path"
        raise ConfigError(describe("tasks", repr(unknown[0]), "tasks that lm-eval has", do))
    run = {
        "tasks": ", ".join(tasks),
        "num_fewshot": str(num_fewshot),
        "limit": str(limit),
        "chat_template": str(chat_template),
        "seed": str(seed),
    }
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(record=True) as caught,
        _resumed(model, resume, run_id, run),
    ):
        warnings.simplefilter("always")
        tracker = import_package("lm_eval.loggers", _PURPOSE).EvaluationTracker(output_path=folder)
        results = evaluator.simple_evaluate(
            model=model,
            tasks=[*tasks],
            task_manager=manager,
            num_fewshot=num_fewshot,
            limit=limit,
            apply_chat_template=chat_template,
            evaluation_tracker=tracker,
            fewshot_random_seed=seed,
            bootstrap_iters=BOOTSTRAP,
        )
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        for task in results["configs"]:
            tracker.save_results_samples(task_name=task, samples=samples[task])
        report = read_lm_eval(folder, title)
    notes = dict.fromkeys(str(each.message) for each in caught if issubclass(each.category, AssayWarning))
    return replace(report, notes=(*report.notes, *notes))


@contextmanager
def _resumed(
    model: LmEvalModel, resume: str | os.PathLike[str] | None, run_id: str | None, run: Mapping[str, str]
) -> Iterator[None]:
    """The model has the answers that are in a folder, and adds its own."""
    if resume is None:
        yield
        return
    identity = Identity(run_id)
    run = {
        "assay": __version__,
        "torch": torch.__version__,
        "lm_eval": str(import_package("lm_eval", _PURPOSE).__version__),
        "model": identity.digest(model.model, "model"),
        "tokenizer": identity.digest(model.tokenizer, "tokenizer"),
        "max_length": str(model.max_length),
        "run_id": str(run_id),
        **run,
    }
    with saves_on_sigterm(), AnswerStore(resume, run) as model.answers:
        try:
            yield
        finally:
            model.answers = None
