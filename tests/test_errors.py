from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from assay import Meter, errors
from assay.metrics import Mean


def tree():
    classes = [item for item in vars(errors).values() if inspect.isclass(item) and item.__module__ == "assay.errors"]
    return [item for item in classes if not item.__name__.startswith("_")]


def test_every_public_name_is_listed_in_order():
    assert errors.__all__ == sorted(errors.__all__)
    assert {item.__name__ for item in tree()} | {"calling_frame", "describe", "warn"} == set(errors.__all__)


def test_every_error_and_warning_has_one_root():
    for item in tree():
        assert issubclass(item, errors.AssayError | errors.AssayWarning), item


@pytest.mark.parametrize(
    "name", ["InputError", "ShapeError", "DtypeError", "DeviceError", "InvalidValuesError", "ConfigError"]
)
def test_bad_arguments_are_value_errors_too(name):
    assert issubclass(getattr(errors, name), ValueError)


@pytest.mark.parametrize("name", ["ShapeError", "DtypeError", "DeviceError", "InvalidValuesError"])
def test_what_is_wrong_with_an_input_is_an_input_error(name):
    assert issubclass(getattr(errors, name), errors.InputError)


@pytest.mark.parametrize(
    "name", ["PlacementWarning", "InvalidValuesWarning", "KernelWarning", "RoundingWarning", "NoDataWarning"]
)
def test_warnings_are_shown_by_default(name):
    assert issubclass(getattr(errors, name), UserWarning)


def test_the_tree_at_the_top_names_every_class():
    for item in tree():
        assert item.__name__ in errors.__doc__, item


def test_a_message_says_what_got_expected_and_what_to_do():
    message = errors.describe("average", "'mirco'", "one of micro, macro.", "Check the spelling.")
    assert message == "average: got 'mirco', expected one of micro, macro. Check the spelling."


def test_a_missing_package_names_the_extra_and_survives_copying():
    error = errors.MissingDependencyError("scikit-learn", extra="demo", purpose="the data sets")
    assert isinstance(error, ImportError)
    for twin in (error, copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert (twin.name, twin.extra, twin.purpose) == ("scikit-learn", "demo", "the data sets")
        assert str(twin) == (
            'scikit-learn: got no such package, expected it for the data sets. Run: pip install "assay[demo]".'
        )


def test_code_without_a_name_is_warned_too():
    """Code that `exec` runs may have no `__name__`, for which Python shows no warning at all."""
    code = compile("Meter(value=Mean()).compute()", "program", "exec")
    with pytest.warns(errors.NoDataWarning, match="no data") as found:
        exec(code, {"Meter": Meter, "Mean": Mean})
    assert found[0].filename == "program"
