"""What a name on the command line stands for: models, data, metrics, and the options around them."""
