"""What single rows give, to be summed: vectors, images, masks, signals."""
