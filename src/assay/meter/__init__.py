"""Counting batches: the meter, its plan of tallies, counts for each device, its sums over processes, its files."""

from assay.meter.meter import Meter
from assay.meter.meter_options import STAGE_BYTES

__all__ = ["STAGE_BYTES", "Meter"]
