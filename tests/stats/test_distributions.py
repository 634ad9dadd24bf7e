"""The few distributions: that each is the one that its name says, against tables and integers."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from assay.stats import distributions as d


@pytest.mark.parametrize(
    ("freedom", "expected"), [(1, 12.7062), (2, 4.3027), (3, 3.1824), (4, 2.7764), (10, 2.2281), (30, 2.0423)]
)
def test_students_quantiles_are_those_of_the_tables(freedom, expected):
    assert d.student_quantile(0.975, freedom) == pytest.approx(expected, abs=5e-5)
    assert d.student_quantile(0.025, freedom) == pytest.approx(-expected, abs=5e-5)
    assert d.student_two_sided(d.student_quantile(0.975, freedom), freedom) == pytest.approx(0.05, rel=1e-9)
    assert d.student_two_sided(math.inf, freedom) == 0


def test_the_normal_distribution():
    assert d.normal_quantile(0.995) == pytest.approx(2.575829, abs=1e-6)
    assert d.normal_cdf(d.normal_quantile(0.3)) == pytest.approx(0.3)
    assert d.normal_two_sided(-1.959964) == pytest.approx(0.05, abs=1e-7)


@pytest.mark.parametrize("n", [1, 10, 1000])
def test_fair_coins(n):
    for k in {-1, 0, n // 3, n // 2, n}:
        exact = sum(math.comb(n, i) for i in range(k + 1)) / 2**n
        assert d.binomial_cdf(k, n) == pytest.approx(exact, rel=1e-9, abs=1e-300)


def test_the_quantile_of_a_beta_variable_is_the_power_of_a_uniform_one():
    for q in (0.025, 0.5, 0.9):
        assert d.beta_quantile(q, 7, 1) == pytest.approx(q ** (1 / 7))
        assert d.beta_quantile(q, 1, 7) == pytest.approx(1 - (1 - q) ** (1 / 7))


def test_the_package_imports_neither_torch_nor_scipy():
    modules = "distributions, intervals, hypothesis_tests, effect_sizes, bootstrap, sampling"
    code = f"import sys; from assay.stats import {modules}; print(sorted({{'torch', 'scipy'}} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
