"""Text to a tree: tokens, parser, macros; and a tree to text."""
