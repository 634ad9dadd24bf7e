"""Every metric with pairs of unusual dtypes: the value of the same numbers in float64, or an error."""

from __future__ import annotations

import itertools

import pytest
import torch

from assay.errors import DtypeError
from laws import CASES, Case, bits, kind_of, rounds, value
from thinning import TURNS, one_of_each

FLOATS = (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e8m0fnu, torch.float16, torch.bfloat16, torch.float64)
WHOLES = (torch.bool, torch.uint8, torch.int8, torch.int32, torch.uint16, torch.uint32, torch.uint64)
KINDS = (*FLOATS, *WHOLES)
PAIRS = [*zip(KINDS, KINDS[5:] + KINDS[:5], strict=True), (torch.float16, torch.bool), (torch.uint8, torch.bool)]


def first_cases() -> list[Case]:
    """One case of each metric, without weights."""
    return list(
        {type(case.metric).__name__: case for case in reversed(CASES) if not (case.weighted or case.raw)}.values()
    )


def wide(x: torch.Tensor) -> torch.Tensor:
    return x.double() if x.dtype.is_floating_point else x.to(torch.int64)


@one_of_each(lambda case: kind_of(case.metric.tally(False)), TURNS)
@pytest.mark.parametrize("case", first_cases(), ids=str)
def test_any_two_dtypes_give_the_value_of_the_same_numbers_or_an_error(case):
    for (of_preds, of_target), count in itertools.product(PAIRS, (1, 5)):
        data = case.data(3, count)
        preds = data.preds.to(of_preds)
        target = None if data.target is None else data.target.to(of_target)
        try:
            found = case.counted(data._replace(preds=preds, target=target))
        except DtypeError:
            continue
        expected = case.counted(data._replace(preds=wide(preds), target=None if target is None else wide(target)))
        if not rounds(case.metric):
            assert bits(value(found)) == bits(value(expected)), (of_preds, of_target)
        else:
            value(found)
