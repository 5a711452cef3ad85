"""The log that all replicas of the scaler share, over Kafka."""
