"""Every batch once through the model and into the meter, in step with other processes."""
