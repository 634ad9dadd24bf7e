"""The agreement of raters beyond chance, where not every rater rated every sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Annotated, ClassVar, Literal

from torch import Tensor

from assay.errors import ConfigError, describe
from assay.metrics.base import Metric, number
from assay.metrics.exact_arithmetic import combined, quotient, rounded
from assay.tally.base import Tally
from assay.tally.rows.rating_terms import WHOLE, RatingShares
from assay.tally.sums.exact import Number
from assay.tally.sums.row_sums import RowSums, RowTotals

Level = Literal["nominal", "ordinal", "interval", "ratio"]


class RaterAgreement(Metric):
    """A value that is computed from the ratings of each sample, of which some may be missing."""

    family: ClassVar[str] = "nominal"
    higher_is_better = True
    inputs: ClassVar[str] = "rater labels"

    num_classes: int | None
    missing: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_classes is None or self.num_classes < 2:
            raise ConfigError(describe("num_classes", self.num_classes, "2 or more", "Give the number of categories"))
        if 0 <= self.missing < self.num_classes:
            do = "Give a number of no category, such as -1"
            raise ConfigError(describe("missing", self.missing, f"no number from 0 to {self.num_classes - 1}", do))

    def tally(self, weighted: bool) -> Tally:
        assert self.num_classes is not None, "it was checked"
        return RowSums(RatingShares(self.num_classes, self.missing), weighted)


@dataclass(frozen=True, kw_only=True)
class KrippendorffAlpha(RaterAgreement):
    r"""Krippendorff's alpha: how reliable the ratings of any number of raters are, also where some are missing.

    $$ \alpha = 1 - (n - 1) \frac{\sum_{c < k} o_{ck} \delta_{ck}^2}{\sum_{c < k} n_c n_k \delta_{ck}^2} \quad
       o_{ck} = \sum_u \frac{n_{uc} (n_{uk} - [c = k])}{m_u - 1} \quad n_c = \sum_k o_{ck} $$

    where `n_uc` of the `m_u` ratings of sample `u` are of category `c`, and `n` is the sum of all `n_c`. Samples with
    fewer than two ratings say nothing and are left out. `δ` is how far two categories are apart, by `level`.

    A weight counts a sample that often: unlike for other metrics, weights of 2 for all samples change the value, as
    the numbers of ratings `n - 1` and `n` are not proportional.

    Shapes:
        `preds (N, raters)` integers, the category of each rater, or `missing`; 1 to 40 raters. No target. Weights are
        `(N,)`.

    Returns:
        float64, shape `()`, at most 1; NaN where no sample has two ratings, or all ratings are of one category.

    Raises:
        ConfigError: no `num_classes`, or one below 2; `missing` is a category; an unknown level.
        InvalidValuesError: by `compute`, if a rating is neither a category nor `missing`.

    Example:
        >>> import torch
        >>> ratings = torch.tensor([[0, 0, -1], [1, 1, 1], [2, 1, 2], [-1, 0, 0]])
        >>> KrippendorffAlpha(num_classes=3)(ratings)
        tensor(0.7188, dtype=torch.float64)

    Source: K. Krippendorff, Computing Krippendorff's Alpha-Reliability (2011),
    https://repository.upenn.edu/asc_papers/43.
    """

    counts_pairs = True
    examples = (
        {},
        {"num_classes": 4, "level": "ordinal"},
        {"num_classes": 4, "level": "interval"},
        {"num_classes": 4, "level": "ratio"},
    )
    defined_for = "samples with two or more ratings, which are of two or more categories"

    num_classes: Annotated[int | None, "how many categories there are; it must be given."] = None
    level: Annotated[
        Level,
        'how far categories `c` and `k` are apart: "nominal": 1; "ordinal": by the number of ratings between them; '
        '"interval": `|c - k|`; "ratio": `|c - k| / (c + k)`.',
    ] = "nominal"
    missing: Annotated[int, "what stands where a rater did not rate a sample."] = -1

    def compute(self, counts: RowTotals) -> Tensor:
        categories = range(self.num_classes or 0)
        _, _, _, *shares = counts.sums[0]
        coincidences = [quotient(each, WHOLE) for each in shares[len(categories) :]]
        pairs = dict(zip(combinations_with_replacement(categories, 2), coincidences, strict=True))
        ratings = [combined(*((1, pairs[min(c, k), max(c, k)]) for k in categories)) for c in categories]
        size = combined(*((1, each) for each in ratings))
        if any(isinstance(each, float) for each in (*ratings, *pairs.values(), size)):
            return number(math.nan)
        observed, expected = Fraction(0), Fraction(0)
        for (c, k), coincidence in pairs.items():
            squared = self._distance(c, k, ratings) ** 2
            observed += squared * Fraction(coincidence)
            expected += squared * Fraction(ratings[c]) * Fraction(ratings[k])
        return number(rounded(1 - quotient((size - 1) * observed, expected)) if expected else math.nan)

    def _distance(self, c: int, k: int, ratings: Sequence[Number]) -> Fraction:
        if self.level == "nominal" or c == k:
            return Fraction(c != k)
        if self.level == "interval":
            return Fraction(c - k)
        if self.level == "ratio":
            return Fraction(c - k, c + k)
        between = sum((Fraction(each) for each in ratings[c : k + 1]), Fraction(0))
        return between - Fraction(ratings[c] + ratings[k]) / 2


@dataclass(frozen=True, kw_only=True)
class GwetAC1(RaterAgreement):
    r"""Gwet's AC1: the agreement of raters beyond chance, which stays high where one category has nearly all ratings.

    $$ \frac{p_a - p_e}{1 - p_e} \quad p_a = \frac{1}{N_2} \sum_u \sum_k \frac{n_{uk} (n_{uk} - 1)}{m_u (m_u - 1)} \quad
       p_e = \frac{1}{K - 1} \sum_k \pi_k (1 - \pi_k) \quad \pi_k = \frac{1}{N_1} \sum_u \frac{n_{uk}}{m_u} $$

    where `n_uk` of the `m_u` ratings of sample `u` are of category `k`; `N_1` samples have a rating, and `N_2` have two
    or more.

    Shapes:
        `preds (N, raters)` integers, the category of each rater, or `missing`; 1 to 40 raters. No target. Weights are
        `(N,)`.

    Returns:
        float64, shape `()`, at most 1; NaN where no sample has two ratings.

    Raises:
        ConfigError: no `num_classes`, or one below 2; `missing` is a category.
        InvalidValuesError: by `compute`, if a rating is neither a category nor `missing`.

    Example:
        >>> import torch
        >>> ratings = torch.tensor([[0, 0, -1], [1, 1, 1], [2, 1, 2], [-1, 0, 0]])
        >>> GwetAC1(num_classes=3)(ratings)
        tensor(0.7600, dtype=torch.float64)

    Source: K. L. Gwet, Computing inter-rater reliability and its variance in the presence of high agreement, British
    Journal of Mathematical and Statistical Psychology 61 (2008), 29-48, https://doi.org/10.1348/000711006X126600.
    """

    examples = ({},)
    defined_for = "samples with two or more ratings"

    num_classes: Annotated[int | None, "how many categories there are; it must be given."] = None
    missing: Annotated[int, "what stands where a rater did not rate a sample."] = -1

    def compute(self, counts: RowTotals) -> Tensor:
        paired, agreeing, rated, *rest = counts.sums[0]
        shares, agreement = [quotient(each, rated) for each in rest[: self.num_classes]], quotient(agreeing, paired)
        if any(isinstance(each, float) for each in (*shares, agreement)):
            return number(math.nan)
        chance = sum(share * (1 - share) for share in shares) / (len(shares) - 1)
        return number(rounded(quotient(agreement - chance, 1 - chance)))
