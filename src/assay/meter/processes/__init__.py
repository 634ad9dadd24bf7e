"""Counts of several processes, and of tensors that are spread over them."""
