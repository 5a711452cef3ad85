"""The scaler's gRPC side: KEDA's externalscaler.proto and the standard health service, with TLS by
setting.
"""
