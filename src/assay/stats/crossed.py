"""Training runs crossed with samples: the difference of two models of each of which some runs saw the same samples."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from assay.stats.distributions import normal_quantile, student_quantile, student_two_sided
from assay.stats.intervals import Array, Ends
from assay.stats.power import POWER


@dataclass(frozen=True)
class CrossedDifference:
    """The difference of the means of two models over their runs and samples, the second minus the first.

    Attributes:
        difference: the difference.
        sample_error: its standard error over samples: of the differences of the means over runs.
        sample_freedom: the degrees of freedom of that.
        run_errors: of both models, the standard error of the mean over runs.
        run_counts: how many runs each has.
    """

    difference: float
    sample_error: float
    sample_freedom: float
    run_errors: tuple[float, float]
    run_counts: tuple[int, int]

    @classmethod
    def of(cls, first: Array, second: Array, sample_error: float, sample_freedom: float) -> CrossedDifference:
        """The difference of two models.

        Args:
            first: the values of the runs of the first; two or more.
            second: those of the second.
            sample_error: the standard error of the difference over samples, the runs given.
            sample_freedom: its degrees of freedom.
        """
        errors = tuple(float(each.std(ddof=1)) / math.sqrt(len(each)) for each in (first, second))
        counts = len(first), len(second)
        return cls(float(second.mean() - first.mean()), sample_error, sample_freedom, (errors[0], errors[1]), counts)

    @property
    def error(self) -> float:
        """The standard error over runs and samples: the root of the sum of the variances of both.

        What runs and samples have in interaction is in both, so it is counted twice: the error is rather too large.

        Example:
            >>> round(CrossedDifference(0.1, 0.03, 99, (0.04, 0.0), (3, 3)).error, 3)
            0.05

        Source:
            Owen 2007, The pigeonhole bootstrap, Annals of Applied Statistics 1:386.
        """
        return math.hypot(self.sample_error, *self.run_errors)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the error (Satterthwaite 1946, Biometrics Bulletin 2:110).

        Example:
            >>> round(CrossedDifference(0.1, 0.0, 99, (0.04, 0.0), (3, 3)).freedom, 3)
            2.0
        """
        parts = [(self.sample_error, self.sample_freedom)]
        parts += [(error, count - 1.0) for error, count in zip(self.run_errors, self.run_counts, strict=True)]
        return 1 / sum((error / self.error) ** 4 / freedom for error, freedom in parts)

    def interval(self, confidence_level: float = 0.95) -> Ends:
        """Student's interval of the difference for other runs and other samples."""
        half = self.error * student_quantile((1 + confidence_level) / 2, self.freedom)
        return self.difference - half, self.difference + half

    def p(self) -> float:
        """The probability of a difference at least as large between equal models, by Student's test."""
        return student_two_sided(self.difference / self.error, self.freedom)

    def smallest(self, confidence_level: float = 0.95) -> float:
        """The smallest difference that so many runs and samples find in four of five cases."""
        return self.error * (student_quantile((1 + confidence_level) / 2, self.freedom) + normal_quantile(POWER))


def means_over_runs(runs: Sequence[Array]) -> Array:
    """What each sample contributes on average over the runs of a model."""
    total = runs[0].astype("float64")
    for each in runs[1:]:
        total = total + each
    return total / len(runs)
