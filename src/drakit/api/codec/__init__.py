"""Bytes to objects and back: JSON, YAML, protobuf."""
