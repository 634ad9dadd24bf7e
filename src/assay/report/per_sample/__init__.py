"""What a report keeps of each sample."""
