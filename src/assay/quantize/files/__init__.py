"""Quantized models in files."""
