"""assay side by side with other libraries: `python -m benchmarks` runs everything and writes docs/benchmarks.md."""
