"""Records of the topic of events as rows of the two tables: transforms, nothing that runs."""
