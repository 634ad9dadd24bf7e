"""assay side by side with its peers: `python -m benchmarks` runs everything and writes docs/benchmarks.md."""
