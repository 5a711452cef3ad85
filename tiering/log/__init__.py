"""Pure readers of the files a Kafka broker keeps: bytes in, values or a typed error out, no broker needed."""
