"""How assay counts what the names of TorchMetrics measure."""
