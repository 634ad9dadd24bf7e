"""lm-eval: a language model as one of lm-eval's; what a task asks is said by lm-eval."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from assay.devices.assign import assign
from assay.devices.placement import to_host
from assay.errors import ConfigError, InputError, InvalidValuesWarning, describe, warn
from assay.evaluation.model.data_parallel import unwrapped
from assay.evaluation.model.forward import homes, ready
from assay.evaluation.model.pipelines import as_pipeline, own_shapes
from assay.evaluation.processes.links import SAME, links_of
from assay.evaluation.processes.outputs import check_members
from assay.evaluation.processes.ranks import local_rank
from assay.evaluation.processes.reachable import modules_of
from assay.integrations.lm_eval.answers import AnswerStore, digest_of
from assay.integrations.lm_eval.processes import RequestProcesses
from assay.integrations.lm_eval.samples import check_finite
from assay.integrations.optional_packages import import_package
from assay.language.causal import CausalModel, positions_of, vocabulary_of
from assay.language.conversation import ChatTemplate, Message
from assay.language.generation import chooser, generate_by
from assay.language.losses import check_vocabulary, sharded_labels, sharded_losses
from assay.language.scoring import BATCH_SIZE
from assay.language.tokens import ByteTokenizer, Tokenizer
from assay.language.windows import IGNORED
from assay.meter.processes.distributed_tensors import is_distributed, whole
from assay.progress import ProgressBar

PURPOSE = "its tasks"
_BASE: Any = import_package("lm_eval.api.model", PURPOSE).TemplateLM
MAX_LENGTH, MAX_NEW_TOKENS = 2048, 256  # where neither model nor task says: those of lm-eval
_SETTINGS = ("until", "max_gen_toks", "do_sample", "temperature", "top_k")
"""Of a task that lets a model continue texts; the temperature says what `do_sample` would."""
NEWLINE = 10  # what stands before a text of bytes

Span = tuple[tuple[str, str] | None, list[int], list[int]]
"""A request, the tokens before, and the tokens whose likelihood is computed."""


class LmEvalModel(_BASE):  # type: ignore[misc]
    """A language model that lm-eval's tasks measure: any module, with floats or quantized weights.

    The log likelihood of a text is the exact sum of those of its tokens, each computed in float32, rounded once to
    float64; it does not depend on the order of requests. Texts, tokens and windows are those of lm-eval's own `hf`.
    `run_lm_eval` shares out requests over processes; elsewhere each process answers all that it is given.

    Args:
        model: gives logits `(B, T, V)` for token ids `(B, T)`. A model of which other processes have parts is for
            `run_lm_eval`.
        tokenizer: makes tokens of text; bytes by default.
        max_length: how many tokens the model is given at most; by default what it can hold, else 2,048.
        batch_size: requests at once.
        device: where to run; as in `assay.evaluate`.

    Raises:
        ConfigError: more tokens than the model can hold.
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
        positions = positions_of(model)
        if max_length is not None and positions is not None and max_length > positions:
            do = f"Pass at most max_length={positions}"
            raise ConfigError(describe("max_length", max_length, f"what the model can hold, {positions} tokens", do))
        self.given, self.model, self.tokenizer = model, as_pipeline(unwrapped(model)), tokenizer or ByteTokenizer()
        self.max_length = max_length or positions or MAX_LENGTH
        self.batch_size = batch_size
        self._device = assign(device, homes(self.model), local_rank()).device.value
        self.answers: AnswerStore | None = None
        """Where answers are kept, so that a run that is killed resumes; None to keep none."""
        self.processes = RequestProcesses()
        """The processes that answer requests together."""

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
        utils = import_package("lm_eval.utils", PURPOSE)
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
        kind = "loglikelihood_rolling" if requests and requests[0][0] is None else "loglikelihood"
        answers = self._begun(kind, digests)
        order = sorted(range(len(requests)), key=lambda k: -len(requests[k][1]) - len(requests[k][2]))
        batches = [order[k : k + self.batch_size] for k in range(0, len(order), self.batch_size)]

        def answered(batch: list[int]) -> None:
            for number in batch:
                if (request := requests[number][0]) is not None:
                    self.cache_hook.add_partial("loglikelihood", request, answers.likelihoods[digests[number]])
            bar.update(advance=len(batch))

        def missing() -> Iterator[list[int]]:  # whole batches, for the same bits
            for batch in batches:
                if any(digests[number] not in answers.likelihoods for number in batch):
                    yield batch
                else:
                    answered(batch)

        with self._bar("Log likelihoods", len(requests)) as bar, self._ready(self.batch_size) as model:
            scores = self.processes.answered(
                missing(),
                lambda batch: list(self._scores(model, [requests[number] for number in batch])),
                self._spare(model),
            )
            for batch, found in scores:
                answers.add_likelihoods([digests[number] for number in batch], found)
                answered(batch)
        return [answers.likelihoods[digest] for digest in digests]

    def _begun(self, kind: str, digests: Sequence[str]) -> AnswerStore:
        """Where answers to some requests are put, with those of the run before."""
        answers = self.answers or AnswerStore()
        self.processes.same(kind, digest_of(*digests))
        answers.begin(kind, digests)
        return answers

    def _bar(self, title: str, total: int) -> ProgressBar:
        return ProgressBar(title, total, rank=self.processes.ranks.own)

    @contextmanager
    def _ready(self, rows: int) -> Iterator[Any]:
        """The model, ready to be called with so many rows at most.

        Raises:
            ConfigError: other processes have parts of it, and do not know when to call it.
        """
        if self.processes.ranks.alone:
            check_whole(self.model)
        with (
            ready(self.model, self._device),
            own_shapes(self.model, rows),
            self.processes.grad_mode(),
            self.processes.in_step(self.model) as model,
        ):
            yield model

    def _spare(self, model: Any) -> Callable[[], Any]:
        """A call of the model whose outputs are thrown away."""
        ids = torch.zeros((1, 2 * self.processes.multiple), dtype=torch.int64, device=self._device)
        return lambda: CausalModel(model)(ids)

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

    def _scores(self, model: Any, spans: Sequence[Span]) -> Iterator[tuple[float, bool]]:
        """Those of some requests of about the same length; after the shorter ones stands what no token looks at."""
        rows = [(before + after)[:-1][-self.max_length :] for _, before, after in spans]
        multiple, positions = self.processes.multiple, positions_of(self.model)
        longest = -(-max(map(len, rows)) // multiple) * multiple
        longest = longest if positions is None else min(longest, positions)
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=self._device)
        logits = CausalModel(model)(ids)
        if logits is None:  # of a pipeline only the last stage has outputs
            return
        check_members(logits, self.processes.ranks.place.members)
        parts = [slice(len(row) - len(after), len(row)) for row, (_, _, after) in zip(rows, spans, strict=True)]
        if is_distributed(logits):
            yield from _sharded_likelihoods(logits, parts, [after for _, _, after in spans])
            return
        for part, (_, _, after), scores in zip(parts, spans, whole(logits), strict=True):
            yield _likelihood(scores[part], torch.tensor(after, device=scores.device))

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """How the model continues each text, up to one of some strings."""
        settings = import_package("lm_eval.models.utils", PURPOSE).normalize_gen_kwargs
        asked = [
            (context, dict(settings(given, MAX_NEW_TOKENS))) for context, given in (each.args for each in requests)
        ]
        digests = [digest_of(*each) for each in asked]
        for _, each in asked:
            self._check_settings(each)
        answers = self._begun("generate_until", digests)

        def answered(number: int) -> None:
            self.cache_hook.add_partial("generate_until", requests[number].args, answers.texts[digests[number]])
            bar.update(advance=1)

        def missing() -> Iterator[int]:
            for number, digest in enumerate(digests):
                if digest not in answers.texts:
                    yield number
                else:
                    answered(number)

        with self._bar("Generating", len(requests)) as bar, self._ready(1) as model:
            texts = self.processes.answered(
                missing(), lambda number: [self._generate(model, *asked[number])], self._spare(model)
            )
            for number, (text,) in texts:
                answers.add_text(digests[number], text)
                answered(number)
        return [answers.texts[digest] for digest in digests]

    def _check_settings(self, settings: Mapping[str, Any]) -> None:
        if unknown := [name for name in settings if name not in _SETTINGS]:
            do = "Take these out of generation_kwargs of the task"
            raise ConfigError(describe("generation_kwargs", ", ".join(unknown), ", ".join(_SETTINGS), do))
        if settings["max_gen_toks"] >= self.max_length:
            got, do = f"{settings['max_gen_toks']} new tokens", "Choose a model that holds more, or fewer new tokens"
            raise ConfigError(describe("max_gen_toks", got, f"fewer than the {self.max_length} of the model", do))

    def _generate(self, model: Any, context: str, settings: Mapping[str, Any]) -> str:
        count, until = settings["max_gen_toks"], settings.get("until", [])
        how = {name: settings[name] for name in ("temperature", "top_k") if name in settings}
        return generate_by(
            model,
            self.tok_encode(context)[-(self.max_length - count) :],
            count,
            self.processes.agreed(chooser(**how)),
            self._device,
            tokenizer=self.tokenizer,
            until=[until] if isinstance(until, str) else until,
            multiple=self.processes.multiple,
        ).text


def check_whole(model: Any) -> None:
    """Raise where other processes have parts of a model: lm-eval asks each process at its own time.

    Raises:
        ConfigError: names what ties the processes.
    """
    links = links_of(modules_of(model), unknown=SAME)
    if links.any:
        got = f"a model whose forward communicates with other processes: {', '.join(links.found)}"
        do = "Measure it with assay.integrations.run_lm_eval on all of them, which keeps them in step"
        raise ConfigError(describe("model", got, "one that is whole on this process", do))


def _sharded_likelihoods(
    logits: Any, parts: Sequence[slice], afters: Sequence[Sequence[int]]
) -> Iterator[tuple[float, bool]]:
    """`_likelihood` of some tokens of each text, by logits of type `DTensor`, which are not gathered."""
    labels = torch.full(logits.shape[:2], IGNORED, dtype=torch.int64, device=logits.device)
    for row, part, after in zip(labels, parts, afters, strict=True):
        row[part] = torch.tensor(after, device=labels.device)
    losses, best = to_host(sharded_losses(logits, labels)), to_host(sharded_labels(logits, labels))
    for k, (part, after) in enumerate(zip(parts, afters, strict=True)):
        yield -_sum(losses[k, part].tolist()), best[k, part].tolist() == [*after]


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
