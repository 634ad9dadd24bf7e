"""What is counted of a batch, on each device, and where it is added up."""
