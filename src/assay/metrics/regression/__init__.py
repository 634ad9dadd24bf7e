"""Metrics of predicted numbers; their public names are those of `assay.metrics`."""
