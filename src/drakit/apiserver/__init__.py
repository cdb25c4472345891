"""The API server: HTTP in, stored objects out."""
