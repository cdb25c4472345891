"""Preemption: a pod of higher priority may have pods of lower priority evicted when it fits nowhere.

trials        would the pod fit if some pods were gone?
budgets       which of them a disruption budget does not give
victims       the fewest pods of a node that have to go
candidates    the node where that does least harm
eviction      the writes: condition, deletion, event
preemption    the last plugin that is asked when nothing fits

Off unless a profile has `preemption: true` in the args of DynamicResources. kube-scheduler evicts nobody for devices.
"""
