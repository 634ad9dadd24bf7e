"""How assay counts what the names of TorchEval measure."""
