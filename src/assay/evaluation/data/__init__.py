"""What is evaluated on: batches whose samples are known, and the proof that each was counted once."""
