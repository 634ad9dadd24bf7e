"""What observations amount to, by which rule, and how it is told."""
