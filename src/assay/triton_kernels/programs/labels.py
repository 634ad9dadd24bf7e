"""Labels from scores, as `decide` defines them, and how often each was predicted for each true label."""

import triton
import triton.language as tl

_BELOW_ALL = tl.constexpr(float("-inf"))


@triton.jit
def _values(scores, place, inside):
    """Scores, exactly; -inf outside."""
    values = tl.load(scores + place, mask=inside, other=_BELOW_ALL)
    if values.dtype == tl.bfloat16:  # the upper half of a float32
        values = (values.to(tl.int16, bitcast=True).to(tl.int32) << 16).to(tl.float32, bitcast=True)
    elif values.dtype == tl.float16:
        values = values.to(tl.float32)
    return values


@triton.jit
def _decide(scores, start, step, wanted, here, CLASSES: tl.constexpr, TOP: tl.constexpr, BLOCK: tl.constexpr):
    """The lowest class of the highest score, or `wanted` where that is among the `TOP` highest; `CLASSES` for NaN.

    The score of class `c` is at `scores + start + c * step`.
    """
    own = _values(scores, start + wanted * step, here)
    best = tl.full(own.shape, _BELOW_ALL, own.dtype)
    label = wanted * 0
    before = wanted * 0
    not_a_number = wanted * 0
    for block in range(0, CLASSES, BLOCK):
        classes = block + tl.arange(0, BLOCK).to(tl.int64)
        inside = here[:, None] & (classes < CLASSES)[None, :]
        values = _values(scores, start[:, None] + (classes * step)[None, :], inside)
        not_a_number += tl.sum((values != values).to(tl.int64), 1)
        values = tl.where(values == values, values, _BELOW_ALL)
        highest = tl.max(values, 1)
        lowest = tl.min(tl.where(values == highest[:, None], classes[None, :], CLASSES), 1)
        label = tl.where(highest > best, lowest, label)
        best = tl.maximum(best, highest)
        if TOP > 1:
            above = (values > own[:, None]) | ((values == own[:, None]) & (classes[None, :] < wanted[:, None]))
            before += tl.sum((above & inside).to(tl.int64), 1)
    if TOP > 1:
        label = tl.where(before < TOP, wanted, label)
    return tl.where(not_a_number > 0, CLASSES, label)


@triton.jit(do_not_specialize=["rows", "ignored"])
def count_labels(
    scores,
    predicted,
    target,
    counts,
    rows,
    inner,
    ignored,
    CLASSES: tl.constexpr,
    TOP: tl.constexpr,
    IGNORES: tl.constexpr,
    MATRIX: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_CLASSES: tl.constexpr,
):
    """Decide the labels of rows, and count them by their true labels.

    Args:
        scores: contiguous, of shape `(samples, CLASSES, inner)`; `rows` is `samples * inner`. Not read for `TOP` of 0.
        predicted: int64 `(rows,)`: written, or read for `TOP` of 0 (-1 below the range, `CLASSES` above it).
        target: integers `(rows,)`; `ignored` is left out where `IGNORES`.
        counts: int64, as in `tally.confusion`: of `Confusion` with `MATRIX`, else of `ClassCounts`.
    """
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    here = row < rows
    true = tl.load(target + row, mask=here, other=0).to(tl.int64)
    if TOP:
        wanted = tl.minimum(tl.maximum(true, 0), CLASSES - 1)
        start = row // inner * inner * CLASSES + row % inner
        label = _decide(scores, start, inner, wanted, here, CLASSES, TOP, BLOCK_CLASSES)
        tl.store(predicted + row, label, mask=here)
    else:
        label = tl.load(predicted + row, mask=here, other=0)
    place = tl.minimum(tl.maximum(true, -1), CLASSES) + 1
    if IGNORES:
        place = tl.where(true == ignored, CLASSES + 2, place)
    if MATRIX:
        tl.atomic_add(counts + place * (CLASSES + 2) + label + 1, 1, mask=here)
    else:
        known = (place >= 1) & (place <= CLASSES)
        tl.atomic_add(counts + place, 1, mask=here)
        tl.atomic_add(counts + CLASSES + 3 + label + 1, 1, mask=here & known)
        tl.atomic_add(counts + 2 * (CLASSES + 3) + place, 1, mask=here & (place == label + 1))
