"""What a path costs beside the dense layer, where it was measured: facts for plans, no promise for other machines."""

from __future__ import annotations

from collections.abc import Sequence

from assay.quantize.dispatch import at

ROWS = (1, 32, 512)
WHERE = "one thread of a Xeon with AVX512 and AMX, 4096 × 4096, torch 2.13.0"

# (dtype of activations, bits, path) -> time over that of the dense layer in the same dtype, at so many ROWS. Best of
# three, in seconds of the thread; groups are the schemes' own.
COSTS: dict[tuple[str, int, str], tuple[float, float, float]] = {
    ("bfloat16", 2, "dequantize"): (5.6, 3.2, 1.3),
    ("bfloat16", 3, "dequantize"): (9.9, 5.1, 1.5),
    ("bfloat16", 4, "int4pack-cpu"): (0.3, 1.8, 2.5),
    ("bfloat16", 4, "dequantize"): (5.5, 3.1, 1.2),
    ("bfloat16", 5, "dequantize"): (11.0, 5.6, 1.5),
    ("bfloat16", 6, "dequantize"): (11.2, 5.4, 1.5),
    ("bfloat16", 7, "dequantize"): (12.1, 6.1, 1.6),
    ("bfloat16", 8, "int8pack"): (0.3, 2.2, 3.2),
    ("bfloat16", 8, "dequantize"): (2.3, 1.7, 1.1),
    ("bfloat16", 8, "int8dynamic"): (0.2, 1.2, 0.6),
    ("float16", 2, "dequantize"): (11.0, 1.3, 1.0),
    ("float16", 3, "dequantize"): (19.7, 1.6, 1.1),
    ("float16", 4, "dequantize"): (10.1, 1.3, 1.0),
    ("float16", 5, "dequantize"): (21.8, 1.7, 1.1),
    ("float16", 6, "dequantize"): (21.2, 1.7, 1.1),
    ("float16", 7, "dequantize"): (24.1, 1.8, 1.1),
    ("float16", 8, "dequantize"): (4.2, 1.1, 1.0),
    ("float16", 8, "int8dynamic"): (0.4, 0.2, 0.1),
    ("float32", 2, "dequantize"): (4.6, 1.6, 1.1),
    ("float32", 3, "dequantize"): (9.1, 2.4, 1.2),
    ("float32", 4, "dequantize"): (4.8, 1.7, 1.1),
    ("float32", 5, "dequantize"): (10.3, 2.6, 1.3),
    ("float32", 6, "dequantize"): (9.4, 2.4, 1.2),
    ("float32", 7, "dequantize"): (11.1, 2.8, 1.3),
    ("float32", 8, "dequantize"): (1.3, 1.0, 1.1),
    ("float32", 8, "int8dynamic"): (0.2, 0.5, 0.3),
}


def cost(dtype: str, bits: int, steps: Sequence[tuple[int, str]]) -> str:
    """What a layer costs on the CPU at few and at many rows, on the path that it takes there; empty if not measured.

    Example:
        >>> cost("bfloat16", 4, ((1, "int4pack-cpu"), (24, "dequantize")))
        '0.3 times the time of the dense layer at 1 row, 3.1 at 32, 1.2 at 512'
        >>> cost("float64", 4, ((1, "dequantize"),))
        ''
    """
    found = [COSTS.get((dtype, bits, at(rows, tuple(steps)))) for rows in ROWS]
    if None in found:
        return ""
    first, *rest = (each[place] for place, each in enumerate(found) if each)
    others = ", ".join(f"{times} at {rows}" for times, rows in zip(rest, ROWS[1:], strict=True))
    return f"{first} times the time of the dense layer at 1 row, {others}"
