"""Nodes in zones, pods with terms, and a naive twin of affinity and spread, from the words of the API."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

from drakit.api import Node, Pod
from drakit.api.objects.plain import from_plain
from drakit.client import NAMESPACES, SERVICES, Key
from drakit.scheduler.cache import SchedulerCache
from drakit.scheduler.framework import CycleState, NodeInfo
from drakit.scheduler.plugins.topology.affinity import InterPodAffinity
from drakit.scheduler.plugins.topology.spread import PodTopologySpread

Plain = dict[str, Any]
ZONE = "zone"
HOST = "kubernetes.io/hostname"


def labelled(name: str, **labels: str) -> Plain:
    return {"metadata": {"name": name, "labels": {HOST: name, **labels}}, "status": {"allocatable": {"pods": "110"}}}


def placed(
    name: str, *, where: str = "", namespace: str = "default", spec: Plain | None = None, **labels: str
) -> Plain:
    meta = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": labels}
    return {"metadata": meta, "spec": {"containers": [], "nodeName": where, **(spec or {})}, "status": {}}


def near(key: str = ZONE, *, weight: int = 0, kind: str = "podAffinity", **term: Any) -> Plain:
    """An affinity of one term; with a weight it is a preference."""
    said = {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    if weight:
        listed = [{"weight": weight, "podAffinityTerm": said}]
        return {"affinity": {kind: {"preferredDuringSchedulingIgnoredDuringExecution": listed}}}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [said]}}}


def far(key: str = ZONE, *, weight: int = 0, **term: Any) -> Plain:
    return near(key, weight=weight, kind="podAntiAffinity", **term)


def spread(key: str = ZONE, skew: int = 1, when: str = "DoNotSchedule", **fields: Any) -> Plain:
    selector = {"matchLabels": {"app": "web"}}
    said = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector, **fields}
    return {"topologySpreadConstraints": [said]}


class World:
    """A cache with nodes and pods, and the plugins on it."""

    def __init__(self, nodes: list[Plain], pods: list[Plain], namespaces: dict[str, Plain] | None = None) -> None:
        self.cache = SchedulerCache()
        self.nodes = {each["metadata"]["name"]: each for each in nodes}
        self.pods: dict[str, Plain] = {}
        self.namespaces = namespaces or {"default": {}}
        self.sets: dict[Key, Any] = {}
        self.services = Listed()
        for each in nodes:
            self.cache.put_node(from_plain(Node, each))
        for each in pods:
            self.put(each)
        handle: Any = SimpleNamespace(nodes=self.cache, informers=SimpleNamespace(of=self._informer))
        self.affinity = InterPodAffinity(handle)
        self.spread = PodTopologySpread(handle)

    def _informer(self, resource: Any) -> Any:
        if resource is not NAMESPACES:
            return SimpleNamespace(cache=self.services if resource is SERVICES else self.sets)
        views = [
            SimpleNamespace(view=SimpleNamespace(metadata=SimpleNamespace(name=name, labels=labels)))
            for name, labels in self.namespaces.items()
        ]
        return SimpleNamespace(cache=Listed({Key("", each.view.metadata.name): each for each in views}))

    def put(self, document: Plain) -> None:
        self.pods[document["metadata"]["uid"]] = document
        self.cache.put_pod(from_plain(Pod, document))

    def remove(self, uid: str) -> None:
        del self.pods[uid]
        self.cache.remove_pod(uid)

    def own(self, document: Plain, owner: Plain, *, api: str = "apps/v1", kind: str = "ReplicaSet") -> Plain:
        """The pod as one of a set."""
        name = owner["metadata"]["name"]
        self.sets[Key(owner["metadata"]["namespace"], name)] = SimpleNamespace(document=owner)
        reference = {"apiVersion": api, "kind": kind, "name": name, "controller": True}
        return {**document, "metadata": {**document["metadata"], "ownerReferences": [reference]}}

    def serve(self, name: str, namespace: str = "default", **selector: str) -> None:
        """A Service that selects by these labels."""
        made = {"metadata": {"name": name, "namespace": namespace}, "spec": {"selector": selector}}
        self.services[Key(namespace, name)] = SimpleNamespace(document=made)

    def refused(self, plugin: Any, document: Plain, nodes: list[NodeInfo] | None = None) -> dict[str, str]:
        """What an attempt says of each node that it refuses."""
        asked = from_plain(Pod, document)
        state = CycleState(asked)
        status, _ = plugin.pre_filter(state, asked)
        if status.code.name == "SKIP":
            return {}
        found = plugin.filter(state, asked, nodes if nodes is not None else self.cache.all())
        return {name: each.reasons[0] for name, each in found.items()}

    def scores(self, plugin: Any, document: Plain) -> dict[str, int]:
        asked = from_plain(Pod, document)
        state = CycleState(asked)
        plugin.pre_filter(state, asked)
        nodes = self.cache.all()
        if plugin.name in state.skip_score:
            return {}
        return dict(zip((each.name for each in nodes), plugin.score(state, asked, nodes), strict=True))


class Listed(dict[Key, Any]):
    """As a cache is: iterating gives objects."""

    def __iter__(self) -> Any:
        return iter(self.values())

    def all(self, namespace: str = "") -> list[Any]:
        return [each for key, each in self.items() if namespace in ("", key.namespace)]


# The naive twin


def selects(selector: Plain | None, labels: Plain) -> bool:
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in selector.get("matchLabels", {}).items()):
        return False
    for each in selector.get("matchExpressions", []):
        value, values = labels.get(each["key"]), each.get("values", [])
        right = {
            "In": value in values,
            "NotIn": value not in values,
            "Exists": value is not None,
            "DoesNotExist": value is None,
        }[each["operator"]]
        if not right:
            return False
    return True


class Twin:
    def __init__(self, world: World, incoming: Plain) -> None:
        self.world = world
        self.pod = incoming

    def _terms(self, document: Plain, kind: str, strength: str) -> list[tuple[Plain, int]]:
        said = ((document["spec"].get("affinity") or {}).get(kind) or {}).get(
            f"{strength}DuringSchedulingIgnoredDuringExecution", []
        )
        return [(each["podAffinityTerm"], each["weight"]) if strength == "preferred" else (each, 0) for each in said]

    def _matches(self, owner: Plain, term: Plain, other: Plain) -> bool:
        namespace = other["metadata"]["namespace"]
        named, by_labels = term.get("namespaces", []), term.get("namespaceSelector")
        inside = namespace in named or selects(by_labels, self.world.namespaces.get(namespace, {}))
        if not named and by_labels is None:
            inside = namespace == owner["metadata"]["namespace"]
        mine, theirs = owner["metadata"]["labels"], other["metadata"]["labels"]
        same = all(theirs.get(key) == mine[key] for key in term.get("matchLabelKeys", []) if key in mine)
        other_value = all(theirs.get(key) != mine[key] for key in term.get("mismatchLabelKeys", []) if key in mine)
        return inside and selects(term.get("labelSelector"), theirs) and same and other_value

    def _placed(self) -> list[tuple[Plain, Plain]]:
        nodes = self.world.nodes
        return [
            (each, nodes[each["spec"]["nodeName"]])
            for each in self.world.pods.values()
            if each["spec"]["nodeName"] in nodes
        ]

    def _together(self, key: str, one: Plain, other: Plain) -> bool:
        value = one["metadata"]["labels"].get(key)
        return value is not None and value == other["metadata"]["labels"].get(key)

    def affinity(self) -> dict[str, str]:
        required = [term for term, _ in self._terms(self.pod, "podAffinity", "required")]
        anti = [term for term, _ in self._terms(self.pod, "podAntiAffinity", "required")]
        friends = [
            where
            for each, where in self._placed()
            if required and all(self._matches(self.pod, term, each) for term in required)
        ]
        counted = any(term["topologyKey"] in where["metadata"]["labels"] for where in friends for term in required)
        first = not counted and all(self._matches(self.pod, term, self.pod) for term in required)
        refused: dict[str, str] = {}
        for name, node in self.world.nodes.items():
            whole = all(term["topologyKey"] in node["metadata"]["labels"] for term in required)
            met = all(any(self._together(term["topologyKey"], node, each) for each in friends) for term in required)
            if required and not (whole and (met or first)):
                refused[name] = "node(s) didn't match pod affinity rules"
            elif any(
                self._matches(self.pod, term, each) and self._together(term["topologyKey"], node, where)
                for each, where in self._placed()
                for term in anti
            ):
                refused[name] = "node(s) didn't match pod anti-affinity rules"
            elif any(
                self._matches(each, term, self.pod) and self._together(term["topologyKey"], node, where)
                for each, where in self._placed()
                for term, _ in self._terms(each, "podAntiAffinity", "required")
            ):
                refused[name] = "node(s) didn't satisfy existing pods anti-affinity rules"
        return refused

    def liking(self) -> dict[str, int]:
        raw = {name: self._likes(node) for name, node in self.world.nodes.items()}
        least, most = min(raw.values()), max(raw.values())
        return {name: int(100 * ((each - least) / (most - least))) if most > least else 0 for name, each in raw.items()}

    def _likes(self, node: Plain) -> int:
        total = 0
        for each, where in self._placed():
            both = ((self.pod, each), (each, self.pod))
            said = [(*pair, "podAffinity", "preferred", 1) for pair in both]
            said += [(*pair, "podAntiAffinity", "preferred", -1) for pair in both]
            said.append((each, self.pod, "podAffinity", "required", 1))
            for owner, other, kind, strength, sign in said:
                for term, weight in self._terms(owner, kind, strength):
                    if self._matches(owner, term, other) and self._together(term["topologyKey"], node, where):
                        total += sign * (weight if strength == "preferred" else 1)
        return total

    def _constraints(self, when: str) -> list[Plain]:
        said = self.pod["spec"].get("topologySpreadConstraints", [])
        return [each for each in said if each["whenUnsatisfiable"] == when]

    def _counts(self, constraint: Plain, node: Plain) -> bool:
        labels = node["metadata"]["labels"]
        wanted = self.pod["spec"].get("nodeSelector", {})
        unwanted = any(labels.get(key) != value for key, value in wanted.items())
        if unwanted and constraint.get("nodeAffinityPolicy", "Honor") == "Honor":
            return False
        return constraint.get("nodeTaintsPolicy") != "Honor" or not node.get("spec", {}).get("taints")

    def _selected(self, constraint: Plain, node: Plain) -> int:
        mine = self.pod["metadata"]
        found = 0
        for each, where in self._placed():
            theirs = each["metadata"]
            same = all(
                theirs["labels"].get(key) == mine["labels"][key]
                for key in constraint.get("matchLabelKeys", [])
                if key in mine["labels"]
            )
            alive = not theirs.get("deletionTimestamp")
            if where is node and theirs["namespace"] == mine["namespace"] and same and alive:
                found += selects(constraint.get("labelSelector"), theirs["labels"])
        return found

    def uneven(self) -> dict[str, str]:
        constraints = self._constraints("DoNotSchedule")
        keys = [each["topologyKey"] for each in constraints]
        nodes = self.world.nodes
        whole = [each for each in nodes.values() if all(key in each["metadata"]["labels"] for key in keys)]
        refused: dict[str, str] = {}
        for name, node in nodes.items():
            for constraint in constraints:
                key = constraint["topologyKey"]
                labels = node["metadata"]["labels"]
                if key not in labels:
                    refused[name] = "node(s) didn't match pod topology spread constraints (missing required label)"
                    break
                counts: dict[str, int] = {}
                for each in whole:
                    if self._counts(constraint, each):
                        value = each["metadata"]["labels"][key]
                        counts[value] = counts.get(value, 0) + self._selected(constraint, each)
                least = min(counts.values(), default=0) if len(counts) >= constraint.get("minDomains", 1) else 0
                own = selects(constraint.get("labelSelector"), self.pod["metadata"]["labels"])
                if counts.get(labels[key], 0) + own - least > constraint["maxSkew"]:
                    refused[name] = "node(s) didn't match pod topology spread constraints"
                    break
        return refused

    def evenness(self) -> dict[str, int]:
        constraints = self._constraints("ScheduleAnyway")
        keys = [each["topologyKey"] for each in constraints]
        nodes = self.world.nodes
        whole = {name: each for name, each in nodes.items() if all(key in each["metadata"]["labels"] for key in keys)}
        raw = dict.fromkeys(whole, 0.0)
        for constraint in constraints:
            key = constraint["topologyKey"]
            values = {each["metadata"]["labels"][key] for each in whole.values()}
            weight = math.log((len(whole) if key == HOST else len(values)) + 2)
            for name, node in whole.items():
                alike = [node] if key == HOST else [
                    each
                    for each in whole.values()
                    if self._together(key, each, node) and self._counts(constraint, each)
                ]  # fmt: skip
                count = sum(self._selected(constraint, each) for each in alike)
                raw[name] += count * weight + constraint["maxSkew"] - 1
        rounded = {name: math.floor(each + 0.5) for name, each in raw.items()}
        least, most = min(rounded.values(), default=0), max(rounded.values(), default=0)
        return {
            name: 0 if name not in rounded else 100 if not most else 100 * (most + least - rounded[name]) // most
            for name in nodes
        }
