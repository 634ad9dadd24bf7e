"""Quantized models in files, and models larger than memory that are read and written one tensor at a time."""
