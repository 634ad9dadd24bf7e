"""Two reports: what differs, and by how much."""
