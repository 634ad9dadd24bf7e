"""What happens to each layer of a model, said before anything runs, and then done whole or not at all."""
