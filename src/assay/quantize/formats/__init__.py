"""Quantized weights in the formats of other libraries: written for their readers, and read as the floats they mean."""
