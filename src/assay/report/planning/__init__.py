"""How many samples it takes."""
