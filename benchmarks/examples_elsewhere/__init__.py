"""Reports of the examples, verified by another Python or another torch."""
