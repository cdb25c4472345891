"""A naive judge: what must hold of a cluster, read off the store (and the devices themselves) after every write.

In:  every event of the store; every start of a container.
Out: violations, in words. Nothing of drakit's own bookkeeping is used: claims, slices and pods are read as plain JSON.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from drakit.api.objects.plain import Plain
from drakit.simulate.machines import Machine
from drakit.simulate.rules import choices
from drakit.simulate.rules.devices import given_twice
from drakit.simulate.rules.namespaces import NAMESPACES, NamespaceLives
from drakit.simulate.rules.promises import GatePromises, Place
from drakit.simulate.rules.watchers import HistoryEntry, WriteHistory
from drakit.store.records import Record, StoreEvent
from drakit.store.replay import Row

ENDED = ("Succeeded", "Failed")
_WATCHED = ("pods", "resourceclaims", "resourceslices")
_READ = ("pods", "podgroups", "resourceclaims", "resourceslices", "nodes", "resourcequotas")


class Judge:
    """`objects` are the stored ones by resource and key. `devices` is every device as it was ever published."""

    def __init__(self, violate: Callable[[str], None], now: Callable[[], float] = lambda: 0.0) -> None:
        self._violate = violate
        self.machines: dict[str, Machine] = {}
        self.objects: dict[str, dict[str, Plain]] = defaultdict(dict)
        self.devices: dict[Place, Plain] = {}
        self.counters: dict[tuple[str, str, str, str], int] = {}
        self.history = WriteHistory()
        self.withdrawn: set[tuple[str, Place]] = set()
        """Uses of devices that were not published at some time since: nobody could know what they take of counters."""
        self.scattered: set[str] = set()
        """Gangs that a user has deleted from: what is left of them may be too few."""
        self.guarded = True
        """Whether the server refuses to give a device twice, whoever asks."""
        self.gates = GatePromises(now)
        self.namespaces = NamespaceLives()
        self._notes: dict[str, set[str]] = defaultdict(set)
        """By uid, annotations that their authors were told are stored."""
        self.revision = 0
        self.quota: int | None = None
        self._came_before = False
        """Whether there are too many claims from before the quota counted: they may stay."""

    # What happens

    def recover(self, records: Mapping[str, Record], rows: Sequence[Row]) -> None:
        """A server has started with these records: they count, whatever was seen before."""
        for revision, key, value, _ in rows:
            if revision > self.revision:  # written before the last crash, and nobody was told
                self._note(revision, key, gone=value is None)
                self._tell(self._replace(key, value))
        self.objects.clear()
        self.namespaces.forget()
        for key, record in records.items():
            list(self._put(key, record.value))

    def stored(self, event: StoreEvent) -> None:
        if event.revision <= self.revision:
            self._violate(f"revision {event.revision} was given again")
        resource = _resource(event.key)
        before = self.objects[resource].get(event.key)
        self._note(event.revision, event.key, gone=event.record is None)
        self._tell(self._replace(event.key, event.record.value if event.record is not None else None))
        self._check(resource, before, self.objects[resource].get(event.key))

    def _note(self, revision: int, key: str, *, gone: bool) -> None:
        self.revision = revision
        resource = _resource(key)
        if resource in _WATCHED:
            known = key in self.objects[resource]
            kind = "DELETED" if gone else "MODIFIED" if known else "ADDED"
            self.history.add(resource, HistoryEntry(revision, "/".join(key.split("/")[4:]), kind))

    def note_taken(self, uid: str, note: str) -> None:
        """Whoever wrote the annotation was told that it is stored: it stays as long as the object does."""
        self._notes[uid].add(note)
        for documents in self.objects.values():
            for each in documents.values():
                if each["metadata"].get("uid") == uid:
                    self._tell(self._lost_notes(each))

    def _lost_notes(self, document: Plain) -> Iterator[str]:
        metadata = document["metadata"]
        for note in sorted(self._notes.get(metadata.get("uid", ""), ())):
            if note not in (metadata.get("annotations") or {}):
                yield f"{note} of {_name(document)} was acknowledged, and somebody has overwritten it"

    def _replace(self, key: str, value: bytes | None) -> Iterator[str]:
        resource = _resource(key)
        if value is not None:
            yield from self._put(key, value)
        else:
            yield from self.namespaces.remove(key)
            gone = self.objects[resource].pop(key, None)
            if gone is not None and resource == "pods":
                self.scattered.add(group_of(gone))
        if resource in ("resourceslices", "resourceclaims"):
            published = {place for place, _ in self.published()}
            self.withdrawn |= {(claim, place) for claim, place, _ in self.uses() if place not in published}

    def published(self) -> Iterator[tuple[Place, Plain]]:
        """Every device of a slice that is stored now."""
        for each in self.objects["resourceslices"].values():
            spec = each["spec"]
            for device in spec.get("devices") or ():
                yield (spec["driver"], spec["pool"]["name"], device["name"]), device

    def _put(self, key: str, value: bytes) -> Iterator[str]:
        resource = _resource(key)
        yield from self.namespaces.put(key, json.loads(value) if key.startswith(NAMESPACES) else None)
        if resource not in _READ:
            return
        document = json.loads(value)
        self.objects[resource][key] = document
        yield from self._lost_notes(document)
        if resource == "resourceslices":
            self._note_devices(document)

    def _note_devices(self, document: Plain) -> None:
        spec = document["spec"]
        for each in spec.get("devices", ()):
            place = spec["driver"], spec["pool"]["name"], each["name"]
            self.gates.published(place, self.devices.get(place), each)
            self.devices[place] = each
        for each in spec.get("sharedCounters", ()):
            for name, counter in each["counters"].items():
                self.counters[spec["driver"], spec["pool"]["name"], each["name"], name] = int(counter["value"])

    def _check(self, resource: str, before: Plain | None, after: Plain | None) -> None:
        if resource == "resourceclaims":
            fresh = after if after is not None and _allocation(after) and not _allocation(before or {}) else None
            self._check_change(before, after)
            self._tell(given_twice(self, _name(fresh) if fresh is not None else ""))
            self._check_quota()
            if fresh is not None:
                self._tell(choices.wrong_devices(fresh, self))
            if after is not None:
                self._tell(choices.wrong_users(after, self))
        if resource == "resourcequotas":
            self._check_quota()
        if resource == "pods" and after is not None and after["spec"].get("nodeName"):
            bound = before is not None and not before["spec"].get("nodeName")
            if bound:
                self._tell(choices.bound_too_early(after, self))
            self._tell(choices.overcommitted(after, self, bound=bound))
        if resource in ("resourceclaims", "pods"):
            self._check_pods()

    def _tell(self, violations: Iterable[str]) -> None:
        for each in violations:
            self._violate(each)

    # What must hold

    def _check_change(self, before: Plain | None, after: Plain | None) -> None:
        """An allocation does not change while somebody has reserved it."""
        if before is None:
            return
        status, now = before.get("status") or {}, (after or {}).get("status") or {}
        held = status.get("allocation")
        if held and status.get("reservedFor") and (after is None or now.get("allocation") != held):
            users = {each["uid"] for each in status["reservedFor"]}
            left = {each["uid"] for each in now.get("reservedFor") or ()}
            if users & left or after is None:
                self._violate(f"the allocation of {_name(before)} changed while it was reserved")

    def uses(self) -> Iterator[tuple[str, Place, Plain]]:
        """Every device that a claim holds; those with admin access are no use."""
        for claim in self.objects["resourceclaims"].values():
            allocation = (claim.get("status") or {}).get("allocation") or {}
            for each in (allocation.get("devices") or {}).get("results") or ():
                if not each.get("adminAccess"):
                    yield _name(claim), (each["driver"], each["pool"], each["device"]), each

    def _check_quota(self) -> None:
        """As Kubernetes says: nothing is refused before the status of a quota says what is hard."""
        if self.quota is None:
            return
        counts = any((each.get("status") or {}).get("hard") for each in self.objects["resourcequotas"].values())
        exceeded = self.claims_in("default") > self.quota
        if not counts:
            self._came_before = exceeded
        elif not exceeded:
            self._came_before = False
        elif not self._came_before:
            self._violate(f"{self.claims_in('default')} claims, and the quota is {self.quota}")

    def claims_in(self, namespace: str) -> int:
        return sum(each["metadata"]["namespace"] == namespace for each in self.objects["resourceclaims"].values())

    def _check_pods(self) -> None:
        """A pod that runs has claims that are allocated and reserved for it or its group."""
        for pod in self.objects["pods"].values():
            if (pod.get("status") or {}).get("phase") != "Running":
                continue
            for claim in self.claims_of(pod):
                status = claim.get("status") or {} if claim is not None else {}
                users = {each["uid"] for each in status.get("reservedFor") or ()}
                mine = {pod["metadata"]["uid"], (self.group(pod) or pod)["metadata"]["uid"]}
                if claim is None or not status.get("allocation") or not mine & users:
                    self._violate(f"pod {_name(pod)} runs, and its claim is not allocated and reserved for it")

    def group(self, pod: Plain) -> Plain | None:
        """The PodGroup of a pod, if it has one that is there."""
        wanted = (pod["metadata"]["namespace"], group_of(pod))
        for each in self.objects["podgroups"].values() if wanted[1] else ():
            if (each["metadata"]["namespace"], each["metadata"]["name"]) == wanted:
                return each
        return None

    def claims_of(self, pod: Plain) -> Iterator[Plain | None]:
        """The claims of a pod as the store has them; none for one that is not there."""
        by_name = {_name(each): each for each in self.objects["resourceclaims"].values()}
        made = {
            each["name"]: each.get("resourceClaimName") for each in pod["status"].get("resourceClaimStatuses") or ()
        }
        extended = (pod["status"].get("extendedResourceClaimStatus") or {}).get("resourceClaimName")
        names = [
            each.get("resourceClaimName") or made.get(each["name"]) for each in pod["spec"].get("resourceClaims") or ()
        ]
        for name in [*names, *([extended] if extended else [])]:
            yield by_name.get(f"{pod['metadata']['namespace']}/{name}")

    def container_started(self, node: str, pod_uid: str, container: str) -> None:
        """Before a container starts: no other of it runs, and its devices are prepared for its claims."""
        machine = self.machines[node]
        if machine.runtime.running(pod_uid, container):
            self._violate(f"container {container} of pod {pod_uid} is started while it runs")
        pod = next((each for each in self.objects["pods"].values() if each["metadata"]["uid"] == pod_uid), None)
        for claim in self.claims_of(pod) if pod is not None else ():
            if claim is not None and claim.get("status", {}).get("allocation"):
                self._check_prepared(machine, claim)

    def _check_prepared(self, machine: Machine, claim: Plain) -> None:
        for each in claim["status"]["allocation"]["devices"].get("results") or ():
            hardware = machine.hardware.get(each["driver"])
            users = hardware.in_use.get((each["pool"], each["device"]), {}) if hardware is not None else {}
            if claim["metadata"]["uid"] not in users:
                self._violate(
                    f"a container starts on {machine.name}, and {each['device']} is not prepared for {_name(claim)}"
                )

    # Where things stand

    def phases(self) -> set[str]:
        """What pods are at, for the table of which fault met what."""
        found = {_phase(each) for each in self.objects["pods"].values()}
        return found or {"idle"}


def _allocation(claim: Plain) -> Plain | None:
    return (claim.get("status") or {}).get("allocation")


def group_of(pod: Plain) -> str:
    """The name of a pod's gang; none when it has none."""
    return str((pod["spec"].get("schedulingGroup") or {}).get("podGroupName") or "")


def _phase(pod: Plain) -> str:
    status = pod.get("status") or {}
    if status.get("phase") in ENDED:
        return "ended"
    if pod["metadata"].get("deletionTimestamp"):
        return "terminating"
    if status.get("phase") == "Running":
        return "running"
    return "starting" if pod["spec"].get("nodeName") else "pending"


def _resource(key: str) -> str:
    """The plural name in a key such as `/registry/resource.k8s.io/resourceclaims/default/a`."""
    parts = key.split("/")
    return parts[3] if len(parts) > 3 else ""


def _name(obj: Plain) -> str:
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])
