"""A share that an imperfect judge found, corrected for how often the judge errs."""

from __future__ import annotations

import math
from dataclasses import dataclass

from assay.stats.intervals import Ends, two_sided_z


@dataclass(frozen=True)
class JudgedShare:
    """How many samples a judge calls positive, and how often it is right where the truth is known.

    Attributes:
        positive: samples that the judge calls positive.
        count: all that it judged.
        hits: of samples that are positive, those that the judge calls so.
        positives: samples that are known to be positive.
        rejections: of samples that are negative, those that the judge calls so.
        negatives: samples that are known to be negative.
    """

    positive: float
    count: float
    hits: float
    positives: float
    rejections: float
    negatives: float

    @property
    def value(self) -> float:
        """Rogan and Gladen's estimate ``(q + specificity - 1) / (sensitivity + specificity - 1)``, in [0, 1].

        NaN where the judge is no better than chance.

        Example:
            >>> round(JudgedShare(300, 1000, 90, 100, 95, 100).value, 3)
            0.294

        Source:
            Rogan & Gladen 1978, American Journal of Epidemiology 107:71.
        """
        better = self.hits / self.positives + self.rejections / self.negatives - 1
        if better <= 0:
            return math.nan
        return min(1.0, max(0.0, (self.positive / self.count + self.rejections / self.negatives - 1) / better))

    def interval(self, confidence_level: float = 0.95) -> Ends:
        """Lang and Reiczigel's interval, which counts that sensitivity and specificity are estimates themselves.

        Of shares after ``z² / 2`` samples (of the judged) and one sample (of those of known truth) of each kind were
        added; (0, 1) where the judge is then no better than chance.

        Example:
            >>> tuple(round(end, 3) for end in JudgedShare(300, 1000, 90, 100, 95, 100).interval())
            (0.234, 0.345)

        Source:
            Lang & Reiczigel 2014, Preventive Veterinary Medicine 113:13.
        """
        z, n = two_sided_z(confidence_level), self.count
        q = (self.positive + z * z / 2) / (n + z * z)
        sensitivity = (self.hits + 1) / (self.positives + 2)
        specificity = (self.rejections + 1) / (self.negatives + 2)
        better = sensitivity + specificity - 1
        if better <= 0:
            return 0.0, 1.0
        share = (q + specificity - 1) / better
        of_sensitivity = sensitivity * (1 - sensitivity) / (self.positives + 2)
        of_specificity = specificity * (1 - specificity) / (self.negatives + 2)
        moved = 2 * z * z * (share * of_sensitivity - (1 - share) * of_specificity)
        variance = q * (1 - q) / (n + z * z) + share**2 * of_sensitivity + (1 - share) ** 2 * of_specificity
        middle, half = share + moved, z * math.sqrt(variance) / better
        return min(1.0, max(0.0, middle - half)), max(0.0, min(1.0, middle + half))
