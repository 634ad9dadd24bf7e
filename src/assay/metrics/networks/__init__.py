"""Metrics that a function or a network of the caller computes; their public names are those of `assay.metrics`."""
