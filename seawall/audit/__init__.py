"""What the verbs of the audit work with: the Spark session that reaches the tables."""
