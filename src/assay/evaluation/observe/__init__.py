"""What follows the samples beside the meter: slices, per-sample values, groups of the bootstrap, queries."""
