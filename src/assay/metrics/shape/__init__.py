"""Metrics of point clouds and meshes; their public names are those of `assay.metrics`."""
