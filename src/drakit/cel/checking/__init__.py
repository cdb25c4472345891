"""A tree to a typed tree: types, declarations, the checker."""
