"""BERTScore and InfoLM with a model and a tokenizer that the caller has loaded; nothing is downloaded."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from assay.encode.strings import check_references, check_strings
from assay.errors import ConfigError, describe
from assay.metrics import PerSample

MEASURES = ("precision", "recall", "f1")
InformationMeasure = Literal["kl", "alpha", "beta", "ab", "renyi", "l1", "l2", "l_infinity", "fisher_rao"]


def bert_score(
    model: nn.Module,
    tokenizer: Any,
    name: str = "BERTScore",
    *,
    layer: int = -1,
    idf: Iterable[str] = (),
    baseline: Sequence[float] = (),
    match_special_tokens: bool = False,
    max_length: int | None = None,
) -> dict[str, PerSample]:
    """BERTScore: how similar the contextual embeddings of the tokens of two sentences are.

    Each token is matched with the most similar one of the other sentence. Precision is the mean cosine over the tokens
    of the prediction, recall that over the tokens of the reference, and f1 their harmonic mean.

    Shapes: `preds` is a list of strings; `target` a list with a string, or a list of references, for each of them: of
    several references the best counts, in each of the three.

    Args:
        model: a model of `transformers` that gives hidden states, such as `AutoModel.from_pretrained(folder)`.
        tokenizer: its tokenizer.
        name: the name of the metrics in reports and files: name the model, as in "BERTScore roberta-large layer 17".
        layer: which of the hidden states; 0 are the embeddings, -1 is the last layer.
        idf: all references, by whose inverse document frequencies tokens are weighted; without, all weigh the same.
        baseline: three numbers b for precision, recall and f1, each of which becomes `(x - b) / (1 - b)`.
        match_special_tokens: whether tokens may be matched with [CLS] and [SEP], as in the package bert-score; these
            never count themselves.
        max_length: how many tokens of a sentence are read; by default what the tokenizer says.

    Returns:
        The metrics "precision", "recall" and "f1", for one meter, which runs the model once a batch. A sentence without
        tokens, or whose tokens weigh nothing, has 0 in all three.

    Raises:
        ConfigError: a tokenizer that cannot pad; a baseline of another length.
        InputError: by an update, something that is no string; the message has its position.

    Source: Zhang et al., BERTScore, arXiv:1904.09675, section 3.
    """
    if len(baseline) not in (0, 3):
        do = "Pass the three numbers of the line for this layer"
        raise ConfigError(describe("baseline", f"{len(baseline)} numbers", "three: precision, recall, f1", do))
    tokens = _Tokens(tokenizer, max_length)
    frequencies = _inverse_frequencies(tokens, idf)
    network = _BertScore(model, tokens, layer, frequencies, tuple(map(float, baseline)), match_special_tokens)
    return PerSample.each(network, name, numbers=MEASURES, takes="strings", higher_is_better=True)


def infolm(
    model: nn.Module,
    tokenizer: Any,
    name: str = "InfoLM",
    *,
    measure: InformationMeasure = "kl",
    alpha: float = 0.5,
    beta: float = 0.5,
    temperature: float = 0.25,
    idf: Iterable[str] = (),
    max_length: int | None = None,
) -> PerSample:
    """InfoLM: how far the words that a masked language model expects in two sentences are apart.

    Each token of a sentence is masked in turn; the distributions over the vocabulary that the model predicts in these
    places are averaged. The value compares the distribution `p` of the prediction with `q` of the reference.

    Shapes: `preds` and `target` are lists of strings of equal length.

    Args:
        model: a masked language model of `transformers`, such as `AutoModelForMaskedLM.from_pretrained(folder)`.
        tokenizer: its tokenizer.
        name: the name of the metric in reports and files: name the model.
        measure: "kl": `sum q log(q / p)`; "alpha": `(sum q^a p^(1-a) - 1) / (a (a - 1))`; "ab": that of Cichocki and
            others, with a and b; "beta": "ab" with a of 1; "renyi": `log(sum q^a p^(1-a)) / (a - 1)`; "l1", "l2" and
            "l_infinity": norms of `q - p`; "fisher_rao": `2 acos(sum sqrt(p q))`. Each is 0 for equal distributions,
            and otherwise above 0.
        alpha: a; of "alpha", "ab" and "renyi".
        beta: b; of "beta" and "ab".
        temperature: by which logits are divided.
        idf: all references, by whose inverse document frequencies tokens are weighted; without, all weigh the same.
        max_length: how many tokens of a sentence are read; by default what the tokenizer says.

    Returns:
        The metric. The model runs as often as the longest sentence of a batch has tokens. A sentence without tokens has
        no distribution: `compute` raises, and says how many there are.

    Raises:
        ConfigError: an unknown measure, or one that `alpha` and `beta` do not define; a temperature of 0 or less; a
            tokenizer without a mask token.

    Source: Colombo et al., InfoLM, arXiv:2112.01589.
    """
    if measure not in get_args(InformationMeasure):
        raise ConfigError(describe("measure", repr(measure), f"one of {', '.join(_MEASURES)}", 'Pass measure="kl"'))
    undefined = {
        "alpha": alpha in (0, 1),
        "renyi": alpha == 1,
        "beta": beta in (0, -1),
        "ab": 0 in (alpha, beta, alpha + beta),
    }
    if undefined.get(measure):
        do = "Pass alpha=0.5, beta=0.5"
        raise ConfigError(describe("alpha, beta", (alpha, beta), f"numbers that define {measure!r}", do))
    if not temperature > 0:
        raise ConfigError(describe("temperature", temperature, "above 0", "Pass temperature=0.25"))
    if tokenizer.mask_token_id is None:
        got, do = "a tokenizer without a mask token", "Pass that of a masked language model"
        raise ConfigError(describe("tokenizer", got, "one that has it", do))
    tokens = _Tokens(tokenizer, max_length)
    network = _InfoLM(model, tokens, temperature, _inverse_frequencies(tokens, idf), measure, alpha, beta)
    return PerSample(network, name, takes="strings", higher_is_better=False)


class _Tokens:
    """Sentences as tokens: ids, the attention mask, and which tokens are words and no special ones."""

    def __init__(self, tokenizer: Any, max_length: int | None) -> None:
        if tokenizer.pad_token_id is None:
            do = "Set it: tokenizer.pad_token = tokenizer.eos_token"
            raise ConfigError(describe("tokenizer", "one without a padding token", "one that pads sentences", do))
        self.tokenizer, self._max_length = tokenizer, max_length

    def __call__(self, sentences: Sequence[str], device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        encoded = self.tokenizer(
            list(sentences),
            padding=True,
            truncation=True,
            max_length=self._max_length,
            return_special_tokens_mask=True,
            return_tensors="pt",
        )
        ids, mask = encoded["input_ids"].to(device), encoded["attention_mask"].to(device)
        return ids, mask, mask.bool() & ~encoded["special_tokens_mask"].to(device).bool()


def _inverse_frequencies(tokens: _Tokens, references: Iterable[str]) -> dict[int, float] | None:
    """`log((n + 1) / (n_t + 1))` by token, where n_t of n references have the token; under -1 that of any other."""
    if isinstance(references, str):
        raise ConfigError(describe("idf", "a string", "a list of references", "Pass idf=[...]"))
    references = list(references)
    if not references:
        return None
    check_strings("idf", references)
    counts: Counter[int] = Counter()
    for reference in references:
        ids, _, words = tokens([reference], torch.device("cpu"))
        counts.update(set(ids[words].tolist()))
    count = len(references) + 1
    return {-1: math.log(count)} | {token: math.log(count / (times + 1)) for token, times in counts.items()}


def _token_weights(frequencies: dict[int, float] | None, ids: Tensor, words: Tensor) -> Tensor:
    """The share of each token in its sentence, 0 for special ones; all 0 where no token weighs anything."""
    weights = words.float()
    if frequencies is not None:
        rows = [[frequencies.get(token, frequencies[-1]) for token in row] for row in ids.tolist()]
        weights = weights * torch.tensor(rows, device=ids.device)
    total = weights.sum(1, keepdim=True)
    return weights / torch.where(total > 0, total, 1)


class _TokenNetwork(nn.Module):
    """A model with its tokenizer."""

    def __init__(self, model: nn.Module, tokens: _Tokens, frequencies: dict[int, float] | None) -> None:
        super().__init__()
        self.model, self.tokens, self.frequencies = model, tokens, frequencies

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device


class _BertScore(_TokenNetwork):
    def __init__(
        self,
        model: nn.Module,
        tokens: _Tokens,
        layer: int,
        frequencies: dict[int, float] | None,
        baseline: tuple[float, ...],
        match_special_tokens: bool,
    ) -> None:
        super().__init__(model, tokens, frequencies)
        self.layer, self.baseline, self.match_special_tokens = layer, baseline, match_special_tokens

    def forward(self, preds: Sequence[str], target: Sequence[str | Sequence[str]]) -> dict[str, Tensor]:
        check_strings("preds", preds)
        check_references(target)
        several = [[each] if isinstance(each, str) else list(each) for each in target]
        counts = [len(references) for references in several]
        repeated = [pred for pred, count in zip(preds, counts, strict=True) for _ in range(count)]
        scores = self._scores(repeated, [each for references in several for each in references])
        best = torch.stack([each.amax(0) for each in torch.split(scores, counts)])
        return dict(zip(MEASURES, best.unbind(1), strict=True))

    def _scores(self, preds: Sequence[str], target: Sequence[str]) -> Tensor:
        """Precision, recall and f1 of pairs of sentences, of shape `(N, 3)`."""
        (p, p_candidates, p_weights), (t, t_candidates, t_weights) = self._embedded(preds), self._embedded(target)
        similar = p @ t.mT
        precision = _best(similar, t_candidates[:, None, :], 2, p_weights)
        recall = _best(similar, p_candidates[:, :, None], 1, t_weights)
        both = precision + recall
        f1 = torch.where(both != 0, 2 * precision * recall / torch.where(both != 0, both, 1), 0)
        scores = torch.stack([precision, recall, f1], 1)
        if self.baseline:
            baseline = torch.tensor(self.baseline, dtype=scores.dtype, device=scores.device)
            scores = (scores - baseline) / (1 - baseline)
        empty = (p_weights.sum(1) == 0) | (t_weights.sum(1) == 0)
        return scores.masked_fill(empty[:, None], 0)

    def _embedded(self, sentences: Sequence[str]) -> tuple[Tensor, Tensor, Tensor]:
        """Embeddings of length 1, the tokens that others may be matched with, and the weights of tokens."""
        ids, mask, words = self.tokens(sentences, self.device)
        states = self.model(input_ids=ids, attention_mask=mask, output_hidden_states=True).hidden_states[self.layer]
        candidates = mask.bool() if self.match_special_tokens else words
        unit = nn.functional.normalize(states.float(), dim=-1)
        return unit, candidates, _token_weights(self.frequencies, ids, words)


def _best(similar: Tensor, candidates: Tensor, dim: int, weights: Tensor) -> Tensor:
    """The weighted mean of the similarity of each token to the most similar candidate."""
    best = similar.masked_fill(~candidates, -math.inf).amax(dim)
    return (torch.where(weights > 0, best, 0) * weights).sum(1)


class _InfoLM(_TokenNetwork):
    def __init__(
        self,
        model: nn.Module,
        tokens: _Tokens,
        temperature: float,
        frequencies: dict[int, float] | None,
        measure: str,
        alpha: float,
        beta: float,
    ) -> None:
        super().__init__(model, tokens, frequencies)
        self.temperature, self.measure, self.alpha, self.beta = temperature, measure, alpha, beta

    def forward(self, preds: Sequence[str], target: Sequence[str]) -> Tensor:
        check_strings("preds", preds)
        check_strings("target", target)
        p, q = self._distribution(preds), self._distribution(target)
        return _MEASURES[self.measure](p, q, self.alpha, self.beta)

    def _distribution(self, sentences: Sequence[str]) -> Tensor:
        """The mean over the tokens of what is expected in their places, `(N, vocabulary)`; NaN without tokens."""
        ids, mask, words = self.tokens(sentences, self.device)
        weights = _token_weights(self.frequencies, ids, words)
        total = torch.zeros((), dtype=torch.float32, device="cpu")
        for place in range(ids.shape[1]):
            masked = ids.clone()
            masked[:, place] = self.tokens.tokenizer.mask_token_id
            logits = self.model(input_ids=masked, attention_mask=mask).logits[:, place].float()
            total = total.to(ids.device) + weights[:, place, None] * (logits / self.temperature).softmax(-1)
        return total.masked_fill((weights.sum(1) == 0)[:, None], math.nan)


def _sum_of_powers(p: Tensor, q: Tensor, a: float, b: float) -> Tensor:
    """`log sum q^a p^b`, from logarithms, which do not vanish."""
    return torch.logsumexp(a * q.log() + b * p.log(), -1)


def _ab(p: Tensor, q: Tensor, a: float, b: float) -> Tensor:
    parts = _sum_of_powers(p, q, a + b, 0) / (b * (a + b)), _sum_of_powers(p, q, 0, a + b) / (a * (a + b))
    return sum(parts, start=-_sum_of_powers(p, q, a, b) / (a * b))


def _norm(order: float) -> Callable[[Tensor, Tensor, float, float], Tensor]:
    return lambda p, q, a, b: torch.linalg.vector_norm(q - p, order, -1)


_MEASURES: dict[str, Callable[[Tensor, Tensor, float, float], Tensor]] = {
    "kl": lambda p, q, a, b: (torch.xlogy(q, q / p) + (p - q)).sum(-1).clamp(min=0),  # p - q sums to 0
    "alpha": lambda p, q, a, b: torch.expm1(_sum_of_powers(p, q, a, 1 - a)) / (a * (a - 1)),
    "beta": lambda p, q, a, b: _ab(p, q, 1.0, b),
    "ab": _ab,
    "renyi": lambda p, q, a, b: _sum_of_powers(p, q, a, 1 - a) / (a - 1),
    "l1": _norm(1),
    "l2": _norm(2),
    "l_infinity": _norm(math.inf),
    "fisher_rao": lambda p, q, a, b: 2 * (p * q).sqrt().sum(-1).clamp(0, 1).acos(),
}
