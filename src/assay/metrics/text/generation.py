"""Metrics of language models other than perplexity: pass@k of programs, and bits per byte of text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE
from assay.metrics.exact_arithmetic import quotient, rounded
from assay.metrics.output_metrics import ElementwiseMetric, MeanTermMetric, Of, of_term
from assay.tally.base import Batch
from assay.tally.sums.exact import Number
from assay.tally.sums.terms import PREDS, TARGET, FloatTerm
from assay.tally.sums.totals import Totals


@dataclass(frozen=True)
class PassProbability(FloatTerm):
    """`1 - C(n - c, k) / C(n, k)` of `c` in `preds` and `n` in `target`."""

    k: int

    needs = "0 <= preds <= target and k <= target"

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        none = (target - target).add_(1)
        for drawn in range(self.k):
            none = none * ((target - preds - drawn).clamp_(min=0) / (target - drawn))
        valid = (preds >= 0) & (preds <= target) & (target >= self.k)
        return (1 - none).masked_fill(~valid, math.nan)


@dataclass(frozen=True)
class AllPassProbability(PassProbability):
    """`C(c, k) / C(n, k)` of `c` in `preds` and `n` in `target`: no program is drawn that failed."""

    def __call__(self, preds: Tensor, target: Tensor) -> Tensor:
        valid = preds >= 0
        return (1 - super().__call__(target - preds, target)).masked_fill(~valid, math.nan)


@dataclass(frozen=True)
class PassAtK(MeanTermMetric):
    """pass@k: how probable it is that one of `k` programs passes the tests of its problem.

    `sum(w (1 - C(n - c, k) / C(n, k))) / sum(w)` with `c` of `n` programs that passed, an estimate without bias. With
    `all_pass` it is pass^k, how probable it is that all of them pass: `sum(w C(c, k) / C(n, k)) / sum(w)`.

    Shapes: `preds` are the numbers of programs that passed, `target` of those that were drawn: `(N,)` both, one number
    a problem; with `num_outputs` `(N, num_outputs)`.

    Raises:
        ConfigError: `k` below 1.
        InvalidValuesError: by `compute`, if more programs passed than were drawn, or fewer than `k` were drawn.

    Example:
        >>> import torch
        >>> PassAtK(2)(torch.tensor([1, 0, 4]), torch.tensor([4, 4, 4]))
        tensor(0.5000, dtype=torch.float64)
        >>> PassAtK(2, all_pass=True)(torch.tensor([3, 0, 4]), torch.tensor([4, 4, 4]))
        tensor(0.5000, dtype=torch.float64)

    Source: Chen et al., Evaluating Large Language Models Trained on Code, arXiv:2107.03374, section 2.1; pass^k: Yao et
    al., τ-bench, arXiv:2406.12045, section 3.
    """

    value_range = SHARE

    k: Annotated[int, "how many programs may be tried."] = 1
    all_pass: Annotated[bool, "all `k` programs must pass, not one of them."] = field(default=False, kw_only=True)

    family: ClassVar[str] = "text"
    higher_is_better = True
    inputs: ClassVar[str] = "passes"
    examples = ({}, {"k": 3})
    term_name = "probability to pass"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise ConfigError(describe("k", self.k, "1 or more", "Pass k=1"))

    @property
    def term(self) -> FloatTerm:  # type: ignore[override]
        return AllPassProbability(self.k) if self.all_pass else PassProbability(self.k)

    def predicted(self, batch: Batch) -> Tensor | None:
        return None  # programs that passed are no prediction of those that were drawn

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        name = f"{self.term_name} all at {self.k}" if self.all_pass else f"{self.term_name} at {self.k}"
        return {name: of_term(self.term)}


@dataclass(frozen=True)
class BitsPerByte(ElementwiseMetric):
    """Bits per byte of a language model: comparable between models with different tokens.

    `-sum(w log2 p) / sum(w bytes)`, with the probability of each text and its length in bytes, as in UTF-8:
    `len(text.encode())`.

    Shapes: `preds` are the natural logarithms of the probability of each text (the sum over its tokens), `target` the
    numbers of bytes; `(N,)` both, or `(N, num_outputs)`.

    Returns:
        float64, shape `()`; 0 or more. NaN without data.

    Example:
        >>> import torch
        >>> text = "naïve"
        >>> BitsPerByte()(torch.tensor([-8.0]), torch.tensor([len(text.encode())]))
        tensor(1.9236, dtype=torch.float64)

    Source: Gao et al., The Pile, arXiv:2101.00027, section 3.1.
    """

    family: ClassVar[str] = "text"
    inputs: ClassVar[str] = "positive pairs"
    terms = frozenset({PREDS, TARGET})

    def predicted(self, batch: Batch) -> Tensor | None:
        return None  # a log probability is no prediction of the number of bytes

    @property
    def per_sample_terms(self) -> Mapping[str, Of]:
        return {"bits": _bits, "bytes": _bytes}

    def value(self, counts: Totals, k: int) -> Number:
        return -rounded(quotient(counts[PREDS][k], counts[TARGET][k])) / math.log(2)


def _bits(preds: Tensor, target: Tensor) -> Tensor:
    return (preds if preds.is_floating_point() else preds.float()) * (-1 / math.log(2))


def _bytes(preds: Tensor, target: Tensor) -> Tensor:
    return target
