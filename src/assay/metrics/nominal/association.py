"""The association of two categorical variables, computed from exact counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, ClassVar, TypeAlias

from assay.errors import ConfigError, describe
from assay.metrics.base import SHARE, Examples
from assay.metrics.contingency_metric import ContingencyMetric, entropy, mutual_information
from assay.metrics.exact_arithmetic import root, root_of_quotient
from assay.tally.base import Tally
from assay.tally.labels.contingency import ContingencyTable, LabelPairs, NanStrategy

BiasCorrection: TypeAlias = Annotated[
    bool, "correct the bias of small samples, after Bergsma; chi-squared itself is not corrected (after Yates)."
]

_BITS = 256  # of the terms of chi-squared
_ROOT_BITS = 512  # of the number under a fourth root, which so has 128


@dataclass(frozen=True, kw_only=True)
class AssociationMetric(ContingencyMetric):
    """A metric of how much one of two categorical variables tells of the other.

    Shapes:
        `preds` and `target` of one shape, numbers: the two categories of each sample. With `num_classes`, they
        are integers, or `preds` are float scores `(N, C, ...)` for a target `(N, ...)`.

    Raises:
        ConfigError: `num_classes` below 2, too large for a table, or together with `nan_strategy`.
        InvalidValuesError: by `compute`, if a category is NaN or not in `0 ... num_classes - 1`, or a weight is
            negative or NaN.
    """

    value_range = SHARE

    family = "nominal"

    num_classes: Annotated[
        int | None,
        "categories are `0 ... num_classes - 1`, and a table of `8 (C + 3) (C + 2)` bytes is counted on the device. "
        "Without it categories are any numbers, and all samples are kept.",
    ] = None
    nan_strategy: Annotated[
        NanStrategy | None,
        'what is done with NaN: "drop" leaves the sample out, "replace" makes it `nan_replace_value`. By default NaN '
        "is an error.",
    ] = None
    nan_replace_value: Annotated[float, "the category that stands for NaN."] = 0.0

    examples: ClassVar[Examples] = ({}, {"nan_strategy": "drop"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.nan_strategy is not None and self.num_classes is not None:
            do = "Leave num_classes out: categories are then any numbers"
            raise ConfigError(describe("nan_strategy", repr(self.nan_strategy), "None with num_classes", do))
        if self.nan_strategy != "replace":
            do = "Pass nan_strategy='replace', too"
            self._refuse_without_effect("nan_replace_value", f"nan_strategy={self.nan_strategy!r}", do)

    def tally(self, weighted: bool) -> Tally:
        if self.num_classes is not None:
            return super().tally(weighted)
        return LabelPairs(
            weighted=weighted, floats=True, nan_strategy=self.nan_strategy, nan_replace_value=self.nan_replace_value
        )


@dataclass(frozen=True, kw_only=True)
class CramersV(AssociationMetric):
    r"""Cramér's V: the association of two categorical variables, 0 if independent, 1 if one determines the other.

    $$ V = \sqrt{\frac{\chi^2 / n}{\min(r - 1, c - 1)}} $$

    for n samples in r and c categories. With `bias_correction`,
    `max(0, chi² / n - (r - 1) (c - 1) / (n - 1))` stands above and `r - (r - 1)² / (n - 1)` for r, likewise for c.

    Returns:
        float64, shape `()`, in [0, 1]; NaN where one variable has a single category, or, with `bias_correction`, a
        category for each sample.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
        >>> CramersV(bias_correction=False)(preds, target)
        tensor(1., dtype=torch.float64)

    Source: H. Cramér, Mathematical Methods of Statistics (1946); W. Bergsma, A bias-correction for Cramér's V and
    Tschuprow's T, Journal of the Korean Statistical Society 42 (2013), 323-328.
    """

    unchanged_by = frozenset({"swap"})
    examples = ({}, {"bias_correction": False}, {"nan_strategy": "drop"})

    bias_correction: BiasCorrection = True

    def value(self, table: ContingencyTable) -> float:
        corrected = _corrected(table, self.bias_correction)
        if corrected is None:
            return math.nan
        phi, rows, columns = corrected
        return min(1.0, root(phi / min(rows, columns)))


@dataclass(frozen=True, kw_only=True)
class TschuprowsT(AssociationMetric):
    r"""Tschuprow's T: the association of two categorical variables, 1 if each determines the other.

    $$ T = \sqrt{\frac{\chi^2 / n}{\sqrt{(r - 1) (c - 1)}}} $$

    for n samples in r and c categories. With `bias_correction`,
    `max(0, chi² / n - (r - 1) (c - 1) / (n - 1))` stands above and `r - (r - 1)² / (n - 1)` for r, likewise for c.

    Returns:
        float64, shape `()`, in [0, 1]; NaN where one variable has a single category, or, with `bias_correction`, a
        category for each sample.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
        >>> TschuprowsT(bias_correction=False)(preds, target)
        tensor(0.8409, dtype=torch.float64)

    Source: A. Tschuprow, Principles of the Mathematical Theory of Correlation (1939); W. Bergsma, A bias-correction
    for Cramér's V and Tschuprow's T, Journal of the Korean Statistical Society 42 (2013), 323-328.
    """

    unchanged_by = frozenset({"swap"})
    examples = ({}, {"bias_correction": False}, {"nan_strategy": "drop"})

    bias_correction: BiasCorrection = True

    def value(self, table: ContingencyTable) -> float:
        corrected = _corrected(table, self.bias_correction)
        if corrected is None:
            return math.nan
        phi, rows, columns = corrected
        return min(1.0, fourth_root(phi * phi / (rows * columns)))


@dataclass(frozen=True, kw_only=True)
class PearsonsContingencyCoefficient(AssociationMetric):
    r"""Pearson's contingency coefficient of two categorical variables; 0 if independent, always below 1.

    $$ C = \sqrt{\frac{\chi^2}{n + \chi^2}} $$

    for n samples. Its largest value depends on the number of categories.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
        >>> PearsonsContingencyCoefficient()(preds, target)
        tensor(0.7071, dtype=torch.float64)

    Source: K. Pearson, On the theory of contingency and its relation to association and normal correlation (1904).
    """

    unchanged_by = frozenset({"swap"})

    def value(self, table: ContingencyTable) -> float:
        phi, unit = _phi_squared(table)
        return root_of_quotient(phi, unit + phi)


@dataclass(frozen=True, kw_only=True)
class TheilsU(AssociationMetric):
    """Theil's U, the uncertainty coefficient: the share of the entropy of `preds` that `target` explains.

    `(H(preds) - H(preds | target)) / H(preds)`: 0 if independent, 1 if `target` determines `preds`. Not symmetric.

    Rounding: counts are exact; logarithms are rounded to float64 and added up exactly.

    Returns:
        float64, shape `()`, in [0, 1]; NaN where `preds` has a single category, as there is nothing to explain.

    Example:
        >>> import torch
        >>> preds, target = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([0, 0, 1, 1, 1, 1])
        >>> TheilsU()(preds, target), TheilsU()(target, preds)
        (tensor(0.5794, dtype=torch.float64), tensor(1., dtype=torch.float64))

    Source: H. Theil, On the estimation of relationships involving qualitative variables, American Journal of Sociology
    76 (1970), 103-154.
    """

    def value(self, table: ContingencyTable) -> float:
        uncertainty = entropy(table.preds_totals)
        return mutual_information(table) / uncertainty if uncertainty else math.nan


def phi_squared(table: ContingencyTable) -> Fraction:
    """Chi-squared over the number of samples; terms are rounded at `2 ** -256`, and those that are 0 stay 0."""
    return Fraction(*_phi_squared(table))


def _phi_squared(table: ContingencyTable) -> tuple[int, int]:
    """The same as a quotient of integers, which is not in lowest terms."""
    size, rows, columns = table.size, table.preds_totals.tolist(), table.target_totals.tolist()
    empty, total = size * size, 0  # cells without counts have terms whose sum is what the others leave
    cells = zip(table.counts.tolist(), table.preds.tolist(), table.target.tolist(), strict=True)
    for count, row, column in cells:
        expected = rows[row] * columns[column]
        total += ((size * count - expected) ** 2 << _BITS) // expected
        empty -= expected
    return total + (empty << _BITS), size * size << _BITS


def fourth_root(value: Fraction) -> float:
    """The fourth root of a positive number or 0, rounded once.

    Example:
        >>> fourth_root(Fraction(16, 81)) == 2 / 3
        True
    """
    scaled = (value.numerator << _ROOT_BITS) // value.denominator
    return math.isqrt(math.isqrt(scaled)) / (1 << _ROOT_BITS // 4)


def _corrected(table: ContingencyTable, bias_correction: bool) -> tuple[Fraction, Fraction, Fraction] | None:
    """Phi-squared, and one less than the number of rows and of columns; None where the quotient is undefined."""
    phi, rows, columns = phi_squared(table), len(table.preds_totals) - 1, len(table.target_totals) - 1
    if not bias_correction:
        return (phi, Fraction(rows), Fraction(columns)) if rows and columns else None
    others = table.size * Fraction(2) ** table.unit - 1
    if others <= max(rows, columns) or not rows or not columns:
        return None
    unbiased = max(Fraction(0), phi - rows * columns / others)
    return unbiased, rows - rows**2 / others, columns - columns**2 / others
