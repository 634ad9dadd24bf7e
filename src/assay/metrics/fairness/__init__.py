"""Metrics that compare groups of samples; their public names are those of `assay.metrics`."""
