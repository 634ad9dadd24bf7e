"""Every difference that the page lists, on both sides: the library gives what is said, and so does assay."""

from __future__ import annotations

import logging

import pytest
from differences import examples

from assay.migrate import LIBRARIES, library
from migrate.sides import our_value, their_value

CASES = [(name, each) for name in LIBRARIES for each in examples(name)]


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{each.theirs}-{each.data}" for name, each in CASES])
def test_both_sides_give_what_the_page_says(name, case):
    logging.disable(logging.WARNING)  # TorchEval logs classes without data
    try:
        assert their_value(name, case.theirs, case.data) == case.gives
    finally:
        logging.disable(logging.NOTSET)
    assert our_value(case.ours, case.data) == case.reads


@pytest.mark.parametrize(("name", "case"), CASES, ids=[f"{name}-{each.theirs}-{each.data}" for name, each in CASES])
def test_a_difference_is_one_and_names_who_has_it(name, case):
    assert case.gives != case.reads
    assert case.names
    assert all(each in library(name).entries for each in case.names)
