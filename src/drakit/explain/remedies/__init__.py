"""What would make pods fit: changes to a cluster, tried one by one and together with the scheduler's own plugins.

trials         tries changes, and says which of them help, or why none does
claimchanges   changes to what claims ask for
surroundings   changes to pods, their group, classes, nodes and taint rules
places         room for the pods: pods that go, nodes that come
proposals      objects as they would be after some changes
"""
