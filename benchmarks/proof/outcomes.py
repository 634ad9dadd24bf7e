"""What a meter on a faulty device does: it finds the fault, or gives a wrong number."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from assay.errors import AssayError, DeviceFaultError, InvalidValuesError, InvalidValuesWarning, NoDataWarning
from assay.meter import Meter
from benchmarks.proof.faults import FaultyOperator, Kind
from laws import bits, feed

ROWS = 24

Result = Literal["no fault", "unchanged", "law", "fingerprint", "recount", "refused", "reported", "missed"]
"""What became of a run: no operator was wrong; the states are what they should be; a law or a fingerprint was broken;
a recount on the CPU was another one; another error; values are reported as invalid; or the states are wrong, and nobody
said so."""


@dataclass(frozen=True)
class Outcome:
    """What became of one run, and whether the operator was wrong where values become counts."""

    result: Result
    counts: bool


def outcomes(
    case: Any, kinds: Sequence[Kind], strikes: Sequence[int | None], stage_bytes: int = 1 << 21, device: str = "mps"
) -> Iterator[tuple[Kind, int | None, Outcome]]:
    """What becomes of a case of `tests/tally_laws.py` with each kind of fault, in each of these calls of the operator.

    None is each call. The device is pretended. With a stage, all rows are in the first flush, of which there are
    recounts.
    """
    data = case.data(1, ROWS)
    batches = [data.rows(slice(k, k + 8)).map(lambda each: each.to(device)) for k in range(0, ROWS, 8)]
    make = partial(case.meter, stage_bytes)
    sound = bits(feed(make(), *batches).states())  # also so that the device passes its self-test
    for kind in kinds:
        for strike in strikes:
            yield kind, strike, _outcome(make, batches, sound, FaultyOperator(kind, device, strike, seed=0))


def _outcome(make: Callable[[], Meter], batches: Sequence[Any], sound: Any, faulty: FaultyOperator) -> Outcome:
    result: Result
    try:
        with warnings.catch_warnings(), faulty:
            warnings.simplefilter("ignore")
            counted = feed(make(), *batches)
            found = bits(counted.states())
    except DeviceFaultError as error:
        result = "recount" if "the CPU" in error.law else "fingerprint" if "other operators" in error.law else "law"
    except (AssayError, RuntimeError, IndexError, AssertionError):
        result = "refused"
    else:
        result = "unchanged" if found == sound else "reported" if _is_reported(counted) else "missed"
    return Outcome(result if faulty.fired else "no fault", faulty.counts)


def _is_reported(meter: Meter) -> bool:
    """Whether the values come with an error, or with a warning, of samples that are invalid."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", InvalidValuesWarning)
        warnings.simplefilter("ignore", NoDataWarning)
        try:
            meter.compute()
        except (InvalidValuesError, InvalidValuesWarning):
            return True
    return False
