from __future__ import annotations

import sys
import types

import pytest

from assay._lazy import attach


@pytest.fixture
def package(monkeypatch):
    module = types.ModuleType("some_package")
    module.__getattr__, module.__dir__ = attach("some_package", {"sqrt": "math", "missing": "math"})
    monkeypatch.setitem(sys.modules, "some_package", module)
    return module


def test_a_name_is_found_in_its_home_and_kept(package):
    import math

    assert "sqrt" not in vars(package)
    assert package.sqrt is math.sqrt
    assert vars(package)["sqrt"] is math.sqrt


def test_names_are_listed_before_they_are_used(package):
    assert {"sqrt", "missing"} <= set(dir(package))


def test_other_names_are_attribute_errors(package):
    with pytest.raises(AttributeError, match="module 'some_package' has no attribute 'cbrt'"):
        _ = package.cbrt


def test_a_home_without_the_name_is_an_attribute_error(package):
    with pytest.raises(AttributeError, match="'math' has no attribute 'missing'"):
        _ = package.missing
