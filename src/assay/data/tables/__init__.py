"""Tables as pyarrow reads them: files, folders, URLs, Arrow streams and queries."""
