"""Metrics of plain values; their public names are those of `assay.metrics`."""
