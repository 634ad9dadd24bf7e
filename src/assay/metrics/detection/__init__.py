"""Metrics of detected objects; their public names are those of `assay.metrics`."""
