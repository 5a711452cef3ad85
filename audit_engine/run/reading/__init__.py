"""What finished runs said, read from the tables of results."""
