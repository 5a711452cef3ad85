"""The outbox as `audit run` leaves it, read with Spark: `spark.Finished`."""
