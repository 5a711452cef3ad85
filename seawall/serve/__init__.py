"""The process of `seawall serve`: settings into an endpoint, its log, its metrics, its end."""
