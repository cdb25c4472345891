"""Pods that are scheduled together: all of a gang's minimum, or none.

attempts     takes the members of a gang from the queue and tries them together
rounds       one such try: who takes part, who got a node, whether that is enough
conditions   tells the PodGroup what became of it
"""
