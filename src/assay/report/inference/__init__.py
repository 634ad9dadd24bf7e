"""What samples say of values, and of the differences between them."""
