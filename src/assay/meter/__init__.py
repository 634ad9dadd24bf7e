"""Counting batches: the meter, its plan of tallies, counts for each device, its sums over processes, its files."""

from assay.meter.meter import STAGE_BYTES, Meter

__all__ = ["STAGE_BYTES", "Meter"]
