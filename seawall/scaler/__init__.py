"""`seawall scaler`: the process around workers.scaler, with the settings, the clusters and the shared
topic.
"""
