"""KEDA's externalscaler.proto, and the Python that grpcio-tools made of it. Nothing here is written by hand
but the .proto and `generate`, and a test makes it anew and compares."""
