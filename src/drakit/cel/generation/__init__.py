"""A checked tree to one Python function."""
