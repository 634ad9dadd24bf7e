"""`generate`: how a language model continues a text, how fast, and in how much memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import torch
from torch import Tensor

from assay.devices.assign import assign
from assay.devices.cost import cost
from assay.devices.placement import to_host
from assay.errors import AssayError, ConfigError, InvalidValuesError, describe
from assay.evaluation.model.forward import homes, ready
from assay.evaluation.processes.companions import is_of_a_collective
from assay.language.causal import CausalModel, logits_of, positions_of, takes
from assay.language.tokens import ByteTokenizer, Tokenizer
from assay.meter.processes.distributed_tensors import whole


@dataclass(frozen=True)
class Generation:
    """How a model continued a text.

    Attributes:
        prompt: the text that was given.
        text: what the model made of it, without the prompt.
        ids: the new tokens; with `until`, also those that ended the text.
        prompt_tokens: how many tokens were given.
        first_s: seconds for the prompt, until the first new token.
        rest_s: seconds for the others.
        peak_bytes: the most memory held; None where the device does not tell.
        memory: what that number is.
        device: where it ran.
    """

    prompt: str
    text: str
    ids: tuple[int, ...]
    prompt_tokens: int
    first_s: float
    rest_s: float
    peak_bytes: int | None
    memory: str
    device: str

    @property
    def tokens_per_second(self) -> float:
        """New tokens a second after the first; NaN where there was but one."""
        return (len(self.ids) - 1) / self.rest_s if len(self.ids) > 1 and self.rest_s else math.nan

    def __str__(self) -> str:
        return self.prompt + self.text


def chooser(temperature: float = 0.0, top_k: int | None = None, seed: int = 0) -> Callable[[Tensor], int]:
    """A function from the logits `(V,)` of the next token to the token.

    Tokens are drawn on the CPU from probabilities in float64, so a seed means the same on every device that gives the
    same logits.
    """
    if not temperature >= 0 or math.isinf(temperature):
        do = "Pass 0 for the most probable token, or about 0.8 to draw"
        raise ConfigError(describe("temperature", temperature, "a number of 0 or more", do))
    if not isinstance(seed, int) or not 0 <= seed < 2**63:
        raise ConfigError(describe("seed", repr(seed), "an integer from 0 to 2^63 - 1", "Pass seed=0"))
    if top_k is not None and (not isinstance(top_k, int) or top_k < 1):
        do = "Leave top_k out to draw from all tokens"
        raise ConfigError(describe("top_k", repr(top_k), "an integer above 0", do))
    generator = torch.Generator().manual_seed(seed)

    def choose(logits: Tensor) -> int:
        scores = to_host(logits)
        if not math.isfinite(largest := float(scores.max())):  # NaN where one is; -inf, where all are, chooses nothing
            do = "Look at the model: its weights may be damaged, or its dtype too narrow"
            got = "NaN" if math.isnan(largest) else f"{largest} as the largest"
            raise InvalidValuesError(describe("logits", got, "finite numbers", do))
        if not temperature:
            return int((scores == scores.max()).nonzero()[0])  # of equal ones the first, on every device
        if top_k is not None and top_k < len(scores):
            scores = scores.masked_fill(scores < scores.topk(top_k).values[-1], -math.inf)
        return int(torch.multinomial((scores.double() / temperature).softmax(0), 1, generator=generator))

    return choose


def generate(
    model: Callable[..., Any],
    prompt: str | Sequence[int],
    max_new_tokens: int = 50,
    *,
    tokenizer: Tokenizer | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    seed: int = 0,
    until: Sequence[str] = (),
    device: str | torch.device = "auto",
    watch: Callable[[str], None] | None = None,
) -> Generation:
    """Let a language model continue a text: a look at what it says, how fast, and in how much memory.

    Models of Hugging Face keep the keys and values of earlier tokens. Others are given the whole text for each token,
    at most what they can hold.

    Args:
        model: a module or function that gives logits `(1, T, V)` for token ids `(1, T)`.
        prompt: the text to continue, or its token ids, which are taken as they are.
        max_new_tokens: how many tokens at most; fewer where the model gives one that ends a text: the tokenizer's, or
            one of `model.generation_config`.
        tokenizer: makes tokens of text; bytes by default.
        temperature: 0 for the most probable token each time, else what logits are divided by before drawing.
        top_k: draw from the k most probable tokens only.
        seed: of the draws.
        until: the text ends before the first of these strings.
        device: where to run; as in `assay.evaluate`.
        watch: called with the text so far after each token.

    Returns:
        The text, tokens a second, and peak memory.

    Raises:
        ConfigError: nothing to continue, an invalid number, a prompt longer than the model can hold, or a model
            that cannot be given token ids.
        ShapeError: the model gives no logits per token.

    Example:
        >>> rows = torch.eye(256).roll(1, 1) * 9  # after each byte the next one
        >>> generate(torch.nn.Embedding.from_pretrained(rows), "ab", 3, device="cpu").text
        'cde'
    """
    choose = chooser(temperature, top_k, seed)
    assigned = assign(device, homes(model)).device.value
    with ready(model, assigned), torch.inference_mode():
        return generate_by(
            model, prompt, max_new_tokens, choose, assigned, tokenizer=tokenizer, until=until, watch=watch
        )


def generate_by(
    model: Callable[..., Any],
    prompt: str | Sequence[int],
    max_new_tokens: int,
    choose: Callable[[Any], int],
    device: torch.device,
    *,
    tokenizer: Tokenizer | None = None,
    until: Sequence[str] = (),
    watch: Callable[[str], None] | None = None,
    multiple: int = 1,
) -> Generation:
    """`generate` with a model that is ready on a device.

    Args:
        model: see there.
        prompt: see there.
        max_new_tokens: see there.
        choose: the next token by the logits `(V,)`; of None where this process has no outputs of the model.
        device: where the model is.
        tokenizer: see there.
        until: see there.
        watch: see there.
        multiple: of how many tokens the model is given a multiple, if it keeps no cache.
    """
    tokenizer, until = tokenizer or ByteTokenizer(), [each for each in until if each]
    ids = _ids_of(prompt, tokenizer)
    _check(ids, max_new_tokens, positions_of(model))
    new_ids: list[int] = []
    if takes(model, "past_key_values"):
        logits = _cached(model, list(ids), device)
    else:
        logits = _uncached(model, list(ids), device, multiple)
    stream = _tokens(logits, choose, max_new_tokens, _stops(model, tokenizer))
    with cost(device) as first:
        start = _first(stream)
    with cost(device) as rest:
        for token in chain(start, stream):
            new_ids.append(token)
            if watch is None and not until:
                continue
            text = tokenizer.decode(new_ids)
            if watch is not None:
                watch(_before(text, until))
            if any(each in text for each in until):
                break
    peak = max((each.peak_bytes for each in (first, rest) if each.peak_bytes is not None), default=None)
    text = _before(tokenizer.decode(new_ids), until)
    said = prompt if isinstance(prompt, str) else tokenizer.decode(ids)
    seconds = first.seconds, rest.seconds
    return Generation(said, text, tuple(new_ids), len(ids), *seconds, peak, first.memory, str(device))


def _ids_of(prompt: str | Sequence[int], tokenizer: Tokenizer) -> list[int]:
    if isinstance(prompt, str):
        return [*tokenizer.start, *tokenizer.encode(prompt)]
    if isinstance(prompt, Sequence) and all(isinstance(each, int) for each in prompt):
        return [*prompt]
    got = type(prompt).__name__
    raise ConfigError(describe("prompt", got, "a text to continue, or its token ids", "Give at least a word"))


def _stops(model: Callable[..., Any], tokenizer: Tokenizer) -> frozenset[int]:
    """The tokens that end a text: the tokenizer's, and those of the settings that lie beside a model."""
    named = getattr(getattr(model, "generation_config", None), "eos_token_id", None)
    ends = named if isinstance(named, list | tuple) else [named]
    return frozenset(each for each in (*ends, tokenizer.stop) if each is not None)


def _before(text: str, until: Sequence[str]) -> str:
    """The text before the first of some strings."""
    return text[: min((text.find(each) for each in until if each in text), default=len(text))]


def _check(ids: list[int], count: int, positions: int | None) -> None:
    if not ids:
        raise ConfigError(describe("prompt", "no tokens", "a text to continue", "Give at least a word"))
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ConfigError(describe("max_new_tokens", repr(count), "an integer above 0", "Pass max_new_tokens=50"))
    if positions is not None and len(ids) + count > positions:
        got = f"{len(ids)} tokens and {count} new ones"
        do = "Shorten the prompt, or pass a smaller max_new_tokens"
        raise ConfigError(describe("prompt", got, f"at most {positions}, what the model can hold", do))


def _first(stream: Iterator[int]) -> list[int]:
    """The first token, where there is one; an error of the model about its input is raised as one of the input."""
    try:
        return list(islice(stream, 1))
    except AssayError:
        raise
    except Exception as error:
        if is_of_a_collective(error):
            raise
        got = f"{type(error).__name__}: {error}"
        do = "Pass a causal language model, and the tokenizer that belongs to it"
        raise ConfigError(describe("model", got, "logits for token ids of shape (1, T)", do)) from error


def _tokens(
    logits: Callable[[int | None], Tensor | None],
    choose: Callable[[Any], int],
    count: int,
    stops: frozenset[int],
) -> Iterator[int]:
    token = None
    for _ in range(count):
        token = choose(logits(token))
        if token in stops:
            return
        yield token


def _uncached(
    model: Callable[..., Any], ids: list[int], device: torch.device, multiple: int
) -> Callable[[int | None], Tensor | None]:
    """A function of each new token that gives a model all tokens so far, and returns the logits of the next one."""
    causal = CausalModel(model)

    def logits(token: int | None) -> Tensor | None:
        if token is not None:
            ids.append(token)
        behind = [0] * (-len(ids) % multiple)  # no token looks at those behind it
        found = causal(torch.tensor([ids + behind], device=device))
        return None if found is None else whole(found[0, len(ids) - 1])

    return logits


def _cached(model: Callable[..., Any], ids: list[int], device: torch.device) -> Callable[[int | None], Tensor | None]:
    """The same for a model of Hugging Face, which is given what is new, and the keys and values of the rest."""
    past: Any = None
    options = {"use_cache": True} | ({"logits_to_keep": 1} if takes(model, "logits_to_keep") else {})

    def logits(token: int | None) -> Tensor:
        nonlocal past
        new = torch.tensor([ids if token is None else [token]], device=device)
        outputs = model(new, past_key_values=past, **options)
        past = outputs.past_key_values
        return whole(logits_of(outputs)[0, -1])

    return logits
