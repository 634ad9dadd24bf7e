"""Power: how many samples a comparison needs to find a difference, and the smallest difference that it would find."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.stats.distributions import normal_quantile

POWER = 0.8
"""The probability with which a comparison should find a difference that is there (Cohen 1988, section 2.4)."""

_HALVINGS = 60  # of [0, 1]: below what a float tells apart


@dataclass(frozen=True)
class Spread:
    """How much a difference varies from one independent unit to the next: a sample, or a cluster of samples.

    Attributes:
        units: how many independent units were measured.
        variance: of the difference in one unit.
        differing: of paired yes or no, the share of units in which the two differ; a larger effect takes its place, as
            no fewer can differ. None of numbers.
        design_effect: how many samples of a cluster say as much as one independent sample; 1 without clusters.
    """

    units: float
    variance: float
    differing: float | None = None
    design_effect: float = 1.0

    def units_for(self, effect: float, confidence_level: float = 0.95, power: float = POWER) -> float:
        """How many units a comparison needs to find a difference of this size.

        With z for the level and for the power, numbers take ``(z₁ + z₂)² variance / effect² + z₁² / 2``; paired yes or
        no, of which a share ψ differs, take ``(z₁ √ψ + z₂ √(ψ - effect²))² / effect²``.

        Args:
            effect: the difference, above 0; of yes or no at most 1.
            confidence_level: 1 - the level of the two-sided test.
            power: the probability to find the difference.

        Example:
            >>> round(Spread(100, 4.0).units_for(0.5), 1), round(Spread(100, 0.1, 0.1).units_for(0.05), 1)
            (127.5, 311.6)

        Source:
            Numbers: Miller 2024, arXiv 2411.00640, section 5, with the correction for Student's t of Guenther 1981, The
            American Statistician 35:243. Paired yes or no: Connor 1987, Biometrics 43:207.
        """
        level, chance = normal_quantile((1 + confidence_level) / 2), normal_quantile(power)
        if self.differing is None:
            return (level + chance) ** 2 * self.variance / effect**2 + level**2 / 2
        differing = max(self.differing, effect)
        return float(((level * math.sqrt(differing) + chance * math.sqrt(differing - effect**2)) / effect) ** 2)

    def smallest(self, confidence_level: float = 0.95, power: float = POWER, units: float | None = None) -> float:
        """The smallest difference that a comparison finds with this power; infinite where none is large enough.

        Args:
            confidence_level: 1 - the level of the two-sided test.
            power: the probability to find the difference.
            units: how many units are compared; as many as were measured by default.

        Example:
            >>> round(Spread(100, 4.0).smallest(), 4), round(Spread(1000, 0.1, 0.1).smallest(), 4)
            (0.5658, 0.028)
        """
        units = self.units if units is None else units
        level = normal_quantile((1 + confidence_level) / 2)
        if self.differing is None:
            rest = units - level**2 / 2
            return (level + normal_quantile(power)) * math.sqrt(self.variance / rest) if rest > 0 else math.inf
        if self.units_for(1.0, confidence_level, power) > units:
            return math.inf
        low, high = 0.0, 1.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            if middle and self.units_for(middle, confidence_level, power) <= units:
                high = middle
            else:
                low = middle
        return high
