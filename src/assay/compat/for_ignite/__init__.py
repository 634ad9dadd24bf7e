"""How assay counts what the names of Ignite measure."""
