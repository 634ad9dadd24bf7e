"""Metrics of language and text; their public names are those of `assay.metrics`."""
