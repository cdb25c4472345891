"""Which devices: from what claims ask for to the first solution in the specified order.

plans        what claims ask for, read once for all nodes
layouts      the devices of a node as one plan sees them
bounds       what the search may leave out
search       the depth-first search
cache        answers, kept for all nodes that look alike
"""
