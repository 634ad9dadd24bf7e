"""What is run on a device: a case with its input, of a module, a function or a metric."""
