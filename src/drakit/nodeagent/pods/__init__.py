"""The pods of the node: workers that bring each to where its spec wants it, and tell how far it has come."""
