"""PodResources: what monitoring agents ask a node about its pods' devices."""
