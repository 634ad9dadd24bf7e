"""Scores with labels into bins, as `tally.score_bins` and `tally.labelled_scores` define them."""

import triton
import triton.language as tl

_ALL_BITS = tl.constexpr(0x7FFFFFFF)


@triton.jit
def _bin(
    values,
    LOGITS: tl.constexpr,
    first: tl.constexpr,
    above: tl.constexpr,
    coarse_dropped: tl.constexpr,
    fine_dropped: tl.constexpr,
    lattice: tl.constexpr,
    middle: tl.constexpr,
    count: tl.constexpr,
    shift: tl.constexpr,
):
    """The bin of each float32, and the bits that say whether it shares it: `ScoreBins.place` for float32."""
    extra: tl.constexpr = (1 << (23 - fine_dropped)) - (1 << (23 - coarse_dropped))
    values = tl.where(values == values, values, 0.0)
    if LOGITS:
        distance = values
        side = values
    else:
        rest = 1.0 - values
        distance = tl.where(values < rest, values, rest)
        side = values - 0.5
    below = side.to(tl.int32, bitcast=True) >> 31
    bits = distance.to(tl.int32, bitcast=True) & _ALL_BITS
    coarse = bits >> coarse_dropped
    steps = tl.maximum((bits >> fine_dropped) - first * extra, coarse)
    steps = tl.minimum(steps, coarse + (above - first) * extra)
    from_middle = steps if LOGITS else middle - steps
    key = ((from_middle ^ below) - below) + middle
    return tl.minimum(tl.maximum(key >> shift, 0), count - 1), bits & lattice


@triton.jit
def _add_total(into, numbers):
    """Add the sum of numbers to a cell."""
    total = tl.sum(numbers, 0)
    tl.atomic_add(into, total, mask=total != 0)


@triton.jit(do_not_specialize=["rows"])
def count_scores(
    scores,
    place,
    invalid,
    known,
    histogram,
    unclear,
    rows,
    GROUPS: tl.constexpr,
    CLASSES: tl.constexpr,
    LABELS: tl.constexpr,
    ONE_VS_REST: tl.constexpr,
    LOGITS: tl.constexpr,
    LAYOUT: tl.constexpr,
    KEEPS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_GROUPS: tl.constexpr,
):
    """Count scores in bins and what is invalid, or say which classes are known.

    Args:
        scores: float32, contiguous, of shape `(rows, GROUPS)`.
        place: int64, contiguous, of shape `(rows, LABELS)`, where `LABELS` is 1 or `GROUPS`: 0 below the range, the
            class + 1, `CLASSES` + 1 above the range, `CLASSES` + 2 where it is ignored.
        invalid: int64: targets out of range, scores that are NaN, scores that are no probabilities and should be. With
            one label for several groups, rows are counted, otherwise scores.
        known: integers of the shape of `place`; written with `KEEPS`: the class, or -1.
        histogram: int64 of shape `(GROUPS, 2, bins)`; counted into unless `KEEPS`. A score is positive where its class
            is 1, or its group with `ONE_VS_REST`.
        unclear: int64: `unclear[0]` counts the scores that may share a bin with others, unless `KEEPS`.
        LAYOUT: `ScoreBins.description`.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    here = row < rows
    not_a_number = tl.zeros([BLOCK_ROWS], tl.int64)
    outside = tl.zeros([BLOCK_ROWS], tl.int64)
    wrong = tl.zeros([BLOCK_ROWS], tl.int64)
    shared = tl.zeros([BLOCK_ROWS], tl.int64)
    for block in range(0, GROUPS, BLOCK_GROUPS):
        group = block + tl.arange(0, BLOCK_GROUPS)
        inside = here[:, None] & (group < GROUPS)[None, :]
        label = (
            row[:, None] * LABELS + (group * (LABELS // GROUPS))[None, :]
        )  # all groups have the one label, or one each
        where = tl.load(place + label, mask=inside, other=CLASSES + 2)
        values = tl.load(scores + row[:, None] * GROUPS + group[None, :], mask=inside, other=0.0)
        counted = inside & (where != CLASSES + 2)
        no_class = (where == 0) | (where == CLASSES + 1)
        is_nan = counted & (values != values)
        is_outside = counted & ((values > 1.0) | (values < 0.0))
        if LABELS == GROUPS:
            not_a_number += tl.sum(is_nan.to(tl.int64), 1)
            outside += tl.sum(is_outside.to(tl.int64), 1)
            wrong += tl.sum((counted & no_class).to(tl.int64), 1)
        else:
            not_a_number = tl.maximum(not_a_number, tl.max(is_nan.to(tl.int64), 1))
            outside = tl.maximum(outside, tl.max(is_outside.to(tl.int64), 1))
            wrong = tl.maximum(wrong, tl.max((counted & no_class).to(tl.int64), 1))
        valid = counted & (no_class == 0)
        if KEEPS:
            kept = tl.where(valid, where - 1, -1).to(known.dtype.element_ty)
            tl.store(known + label, kept, mask=inside & ((group == 0)[None, :] | (LABELS == GROUPS)))
        else:
            bins, shares = _bin(
                values, LOGITS, LAYOUT[0], LAYOUT[1], LAYOUT[2], LAYOUT[3], LAYOUT[4], LAYOUT[5], LAYOUT[6], LAYOUT[7]
            )
            shared += tl.sum(((shares != 0) & inside).to(tl.int64), 1)
            if ONE_VS_REST:
                positive = where - 1 == group[None, :]
            else:
                positive = where == 2
            cell = (2 * group[None, :] + positive.to(tl.int64)) * LAYOUT[6] + bins
            tl.atomic_add(histogram + cell, 1, mask=valid)
    if LABELS != GROUPS:  # a row with NaN is only that
        outside = tl.where(not_a_number > 0, 0, outside)
    _add_total(invalid, wrong)
    _add_total(invalid + 1, not_a_number)
    if LOGITS == 0:
        _add_total(invalid + 2, outside)
    if KEEPS == 0:
        _add_total(unclear, shared)
