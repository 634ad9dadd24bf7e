"""What is noted while a program runs: operators, lines, where tensors come from, and devices that are named."""
