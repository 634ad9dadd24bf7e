"""Intervals of what meters read: closed forms, and replicates from tallies that are resampled."""
