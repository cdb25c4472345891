"""Rules that many kinds share: metadata, names, lists, conditions, node selectors."""
