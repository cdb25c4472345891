"""Which changes can help a pod that InterPodAffinity refused.

In:  an event, and a pod that waits.
Out: whether the pod is worth another attempt. In doubt it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from drakit.api.objects.cluster import Node
from drakit.api.objects.pods import Pod
from drakit.scheduler.framework import Action, Hint, Interest
from drakit.scheduler.plugins.interests import on_bound_pod, on_node, on_the_pod, queue_if
from drakit.scheduler.plugins.topology.terms import Terms, terms_of

LabelsOf = Callable[[str], Mapping[str, str]]


def affinity_interests(labels_of: LabelsOf) -> Sequence[Interest]:
    """`labels_of` gives the labels of a namespace."""

    def found(terms: Terms, pod: Pod) -> list[bool]:
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        return [each.matches(namespace, labels, labels_of(namespace)) for each in terms]

    def matches_all(terms: Terms, pod: Pod) -> bool:
        return bool(terms) and all(found(terms, pod))

    def matches_any(terms: Terms, pod: Pod) -> bool:
        return any(found(terms, pod))

    def after_pod(pod: Pod, old: Pod | None, new: Pod | None) -> Hint:
        own = terms_of(pod)
        if old is None and new is not None:
            # A new pod helps by being near; it can only get in the way of anti-affinity.
            return queue_if(matches_all(own.required, new))
        if old is not None and new is None:
            return queue_if(matches_any(own.required_anti, old) or matches_any(terms_of(old).required_anti, pod))
        if old is None or new is None:
            return Hint.QUEUE
        # Labels changed: the pod may have become a neighbour that is wanted, or ceased to be one that is not.
        nearer = matches_all(own.required, new) and not matches_all(own.required, old)
        return queue_if(nearer or (matches_any(own.required_anti, old) and not matches_all(own.required_anti, new)))

    def after_node(pod: Pod, old: Node | None, new: Node) -> Hint:
        """A label that a term asks for came or changed; for terms of others, any node may do."""
        own = terms_of(pod)
        keys = [each.topology_key for each in (*own.required, *own.required_anti)]
        if old is None or not keys:
            return queue_if(all(each.topology_key in new.metadata.labels for each in own.required))
        before, after = old.metadata.labels, new.metadata.labels
        return queue_if(any(before.get(key) != after.get(key) for key in keys))

    return (
        on_bound_pod(Action.ADD | Action.UPDATE_POD_LABELS | Action.DELETE, after_pod),
        on_the_pod(Action.UPDATE_POD_LABELS),
        on_node(Action.ADD | Action.UPDATE_NODE_LABELS, after_node),
    )
