"""Objects in and out of the store: keys, decoded objects, followers of changes."""
