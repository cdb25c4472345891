"""Text to plain data and back: JSON, YAML, times, quantities; what can be wrong with it."""
