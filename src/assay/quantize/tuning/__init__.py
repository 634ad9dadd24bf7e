"""Which kernel is the fastest on this machine: measuring it, and what was measured."""
