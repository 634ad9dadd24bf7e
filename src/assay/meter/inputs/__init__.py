"""The arguments of an update: as tensors, as labels, as columns of raw samples."""
