"""What is counted: frozen descriptions of additive integer states."""
