"""Metrics of speech and other audio; their public names are those of `assay.metrics`."""
