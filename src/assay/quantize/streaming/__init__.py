"""Models larger than memory: read, quantized and written one tensor at a time."""
