"""Metrics of clusterings, compared with classes or by the data alone; the public names are in `assay.metrics`."""
