"""What `assay demo` trains and shows."""
