"""The command line: the composition root, and the only reader of arguments and environment.

One module per command; `main` puts them together.
"""
