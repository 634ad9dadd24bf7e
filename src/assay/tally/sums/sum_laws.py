"""Conservation laws of exact sums of terms over samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from assay.tally.base import State
from assay.tally.conservation import BrokenLaw, Laws, at_most, equal, not_negative
from assay.tally.sums import exact


def of_counts(state: State, samples: int | None, counts_all: bool) -> Laws:
    """What the counts of a state of `Sums` say of each other.

    Args:
        state: what was counted.
        samples: how many samples there were for each output; None where that is not known.
        counts_all: whether every sample is counted, or counted as left out.
    """
    yield from not_negative(state, "count", "invalid", "special", "bad_weights", "left_out")
    count = state["count"].numpy()
    counted = count + state["left_out"].numpy() if "left_out" in state else count
    for each in dict.fromkeys(counted.tolist()):
        yield from at_most("samples that were counted are no more than the samples", samples, each)
        if counts_all:
            yield from equal("samples that were counted and left out are the samples", samples, each)
    invalid, special = state["invalid"].numpy(), state["special"].numpy().any(-1)
    law = "values that are not finite are no more than the samples"
    yield from at_most(law, samples, int(invalid.max(initial=0)))
    if ((invalid > 0) != special).any():
        law = "values that are not finite are infinite or NaN"
        yield BrokenLaw(law, f"{int(np.count_nonzero(invalid))} outputs with some", f"{int(special.sum())}")


def of_squares(state: State, squares: Sequence[tuple[int, int]]) -> Laws:
    """A sum of squares is no less than the square of the sum divided by the count.

    Args:
        state: what was counted, without weights; all of it is finite.
        squares: the places of a term among those of order 1, and of its square among those of order 2.
    """
    count = state["count"].numpy()
    for first, second in squares:
        sums = exact.integers(state["sums1"][first], 1)
        above = exact.integers(state["sums2"][second], 2)
        up = above[1] - 2 * sums[1]
        for k, (total, square) in enumerate(zip(sums[0], above[0], strict=True)):
            left, right = (square << max(up, 0)) * int(count[k]), (total * total) << max(-up, 0)
            if square < 0 or left < right:
                yield BrokenLaw("a sum of squares is no less than the sum allows", "a larger sum", "a smaller one")
