"""What runs on the device, in Triton's language. Imported when it is first launched, because it imports Triton."""
