"""Calls of torch_dct."""

from collections.abc import Iterator

from benchmarks.packages_audited.calls import function, noise

from assay.audit import Case


def audit_cases() -> Iterator[Case]:
    """What is called."""
    for n in ("dct", "idct", "dct1", "idct1", "dct_2d"):
        yield function(f"torch_dct.{n}", noise(4, 8))
    yield function("torch_dct.dct_3d", noise(2, 3, 4))
