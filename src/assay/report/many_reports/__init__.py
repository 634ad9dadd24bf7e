"""Many reports: over time, in an order, on one page."""
