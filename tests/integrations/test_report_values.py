"""The flat names under which trackers keep a report."""

from __future__ import annotations

import math

import pytest

from assay.errors import ConfigError
from assay.integrations.report_values import numbers, tables
from assay.report import Report, Section, Value
from integrations import tracked


def test_values_intervals_and_slices():
    found = numbers(tracked.report(), "val/")
    assert math.isnan(found.pop("val/undefined"))
    assert found == {
        "val/accuracy": 0.9375,
        "val/accuracy_lower": 0.9,
        "val/accuracy_upper": 0.96,
        "val/F1 (macro)": 0.5,
        "val/accuracy[night]": 0.25,
    }


def test_sections_are_named_where_there_are_several():
    assert {"held out/accuracy", "train/accuracy"} <= numbers(tracked.reports()).keys()
    assert list(tables(tracked.reports())) == ["held out/per class", "held out/per class 2"]


def test_what_cannot_be_logged():
    twice = Report("r", [Section("s", [Value("a", 1.0), Value("a", 2.0)])])
    with pytest.raises(ConfigError, match="report: got two values named 'a', expected unique names"):
        numbers(twice)
    with pytest.raises(ConfigError, match="report: got dict, expected a report of assay"):
        numbers({"accuracy": 1.0})
