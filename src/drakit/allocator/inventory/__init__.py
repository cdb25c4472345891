"""What there is, and who has it: slices, classes, taint rules, nodes and claims, kept up to date object by object.

shapes       devices that are alike, without their names
selectors    which shapes the selectors of a class and a request match
contents     the devices of a pool, shared by all pools that are alike
deadlines    how long a look at a node may take
pools        one pool as the nodes see it
ledger       which devices are in use, derived from claims alone
inventory    all of it, and what a node sees
"""
