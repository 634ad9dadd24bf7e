"""Tallies of scores with labels: kept, in bins, or between thresholds; what is computed from their order."""
