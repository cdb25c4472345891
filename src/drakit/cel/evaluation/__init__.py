"""A checked tree to steps that can be counted and traced."""
