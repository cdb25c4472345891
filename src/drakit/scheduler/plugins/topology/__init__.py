"""Where a pod may stand relative to others: inter-pod affinity and anti-affinity, and topology spread.

terms      what a pod says of other pods, read once
counts     what pods on nodes come to, remembered for nodes that have not changed
affinity   the plugin InterPodAffinity
spread     the plugin PodTopologySpread
"""
