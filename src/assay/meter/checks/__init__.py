"""Whether what was counted is right: laws that it must satisfy, and batches that are counted once more."""
