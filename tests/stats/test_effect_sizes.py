"""Effect sizes against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.stats import effect_sizes as e


def test_effect_sizes():
    a, b = np.array([1.0, 4, 2, 5]), np.array([3.0, 3, 7, 9, 6])
    pooled = math.sqrt((((a - 3) ** 2).sum() + ((b - 5.6) ** 2).sum()) / 7)
    assert e.cohens_d(a, b) == pytest.approx(2.6 / pooled)
    assert e.cohens_dz(a) == pytest.approx(3 / np.std(a, ddof=1))
    assert e.cohens_h(0.2, 0.2) == 0
    assert e.cohens_h(0, 1) == pytest.approx(math.pi)
    assert math.isnan(e.odds_ratio(0, 0))
    assert e.odds_ratio(0, 3) == math.inf
    assert e.odds_ratio(4, 1) == 0.25
