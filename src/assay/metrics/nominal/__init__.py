"""Metrics of the association and agreement of categories; their public names are those of `assay.metrics`."""
