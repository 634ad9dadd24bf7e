"""Metrics of masks, image by image; their public names are those of `assay.metrics`."""
