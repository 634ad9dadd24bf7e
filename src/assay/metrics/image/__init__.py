"""Metrics of images and volumes beside a reference; their public names are those of `assay.metrics`."""
