"""What `evaluate` is given, as the loop takes it."""
