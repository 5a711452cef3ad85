"""Evidence: what Seawall saw and did, kept on disk first, then in Kafka, so that nothing goes unnoticed."""
