"""Metrics of classification of labels, scores and probabilities; their public names are those of `assay.metrics`."""
