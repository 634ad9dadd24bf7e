"""What is reported: values with intervals, diagnostics, decisions."""
