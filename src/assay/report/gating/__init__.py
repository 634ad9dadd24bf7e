"""What a report must show before something may go on."""
