"""Metrics of generative models, and of samples of two distributions; the public names are in `assay.metrics`."""
