"""Flags that several commands share, and what they name: files, saved objects, an API server."""
