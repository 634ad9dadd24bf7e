"""Processes get equally many batches: those that have run out repeat one that counts nothing."""

from __future__ import annotations

from assay.evaluation.data.data_source import ANOTHERS, Unit
from assay.evaluation.loop.equal_steps import one_by_one, up_to


def unit(data):
    return Unit(None, data)


def stream(units):
    yield from units


def drawn(units, others):
    """What a process is given whose neighbour has `others` batches."""
    left = iter([1] * others)
    steps = one_by_one(stream(units), lambda own: max(own, next(left, 0)), lambda own: own or "borrowed")
    return [(each.data, each.own) for each in steps]


def test_a_process_that_has_run_out_repeats_its_first_batch_without_counting_it():
    assert drawn([unit("a"), unit("b")], 4) == [("a", True), ("b", True), ("a", False), ("a", False)]
    assert drawn([unit("a"), unit("b")], 0) == [("a", True), ("b", True)]


def test_a_process_without_a_batch_takes_that_of_another():
    assert drawn([], 2) == [("borrowed", False)] * 2
    assert drawn([], 0) == []


def test_batches_of_others_are_passed_on_and_are_no_steps():
    found = drawn([unit(ANOTHERS), unit("a"), unit(ANOTHERS)], 2)
    assert found == [(ANOTHERS, True), ("a", True), (ANOTHERS, True), ("a", False)]


def test_a_known_number_is_filled_up():
    assert [each.own for each in up_to(stream([unit("a")]), 1, 3)] == [True, False, False]
