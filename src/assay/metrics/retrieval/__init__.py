"""Metrics of rankings of documents, query by query; their public names are those of `assay.metrics`."""
