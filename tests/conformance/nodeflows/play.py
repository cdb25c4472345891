"""Play one flow: do what the recorder did, wait for what it saw, compare.

In:  a flow.
Out: differences, as sentences; none when the agent did as the kubelet did, but for the rules.

Time goes as in the recording, with one exception: while a pod of ours waits for its next try, it stands still until
something is awaited, as our tries come sooner than the recorded ones. What is awaited may take as long as it takes.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from drakit.client import PODS
from drakit.nodeagent.claims.checkpoint import FILE, decode, encode
from drakit.nodeagent.plugins.health import FILE as HEALTH_FILE
from tests.conformance.nodeflows.actions import Actions, UnknownAction
from tests.conformance.nodeflows.compare import (
    compare_calls,
    compare_cri,
    compare_events,
    compare_metrics,
    compare_order,
    compare_pod_resources,
    compare_states,
    normal_of,
    without_repeats,
)
from tests.conformance.nodeflows.metricsrun import compare_exposition
from tests.conformance.nodeflows.rules import ENDINGS, Ending, explains_missing_event, normal_call, normal_event
from tests.conformance.nodeflows.stage import Stage, stage

Plain = dict[str, Any]
OTHER_GROUPS = ("go-driver",)
"""Recorded from a driver, not from a kubelet: the driver kit plays those."""
_PATIENCE = 130.0
_JITTER = 0.06
_TOGETHER = 0.1


def load(path: Path) -> list[Plain]:
    data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    flows = [json.loads(line) for line in data.splitlines() if line.strip()]
    return [flow for flow in flows if flow["group"] not in OTHER_GROUPS]


def play(flow: Plain) -> list[str]:
    with tempfile.TemporaryDirectory() as root:
        return asyncio.run(_play(flow, Path(root)))


async def _play(flow: Plain, root: Path) -> list[str]:
    if any(step.get("saw") == "kubelet /metrics" for step in flow["steps"]):
        return await compare_exposition(flow, root)
    async with stage(flow, root) as it:
        player = Player(it)
        try:
            await player.play()
        except UnknownAction as error:
            player.problems.append(f"the harness does not know this action: {error}")
        return player.problems


class Player:
    def __init__(self, it: Stage) -> None:
        self._it = it
        self._actions = Actions(it)
        self.problems: list[str] = []
        self._t = 0.0
        self._at = it.clock.monotonic()
        self._seen: list[Plain] = []
        self._together = False

    async def play(self) -> None:
        await self._actions.setup()
        steps = causes_first(list(without_repeats(self._it.flow["steps"])))
        for index, step in enumerate(steps):
            ending = next((each for each in ENDINGS if each.begins(step, steps[:index], self._it.flow)), None)
            if ending is not None:
                await self._end_differently(ending)
                return
            await self._step(step, steps[index + 1 :])
            self._it.check_alive()
            self._seen.append(step)
        await self._it.run_for(0.2)
        self._compare()

    async def _step(self, step: Plain, ahead: Sequence[Plain]) -> None:
        if "do" in step:
            await self._pace(step)
            await self._actions.do(step)
            return
        handler = _SAW.get(step["saw"])
        if handler is not None:
            await handler(self, step, ahead)
        elif step["saw"].startswith("checkpoint entries"):
            await self._checkpoint(step)
        elif step["saw"].startswith("bytes of "):
            self._bytes(step)
        elif step["saw"].startswith(("kubelet /metrics lines", "kubelet /healthz", "(", "pod deleted")):
            await self._other(step)
        elif "log" not in step:  # what a kubelet logs is its own business
            self.problems.append(f"the harness does not know this observation: {step['saw']}")

    async def _pace(self, step: Plain) -> None:
        """Let as much time pass as in the recording, since the last step that came at its time."""
        if not self._it.is_retrying and not self._together:
            passed = self._it.clock.monotonic() - self._at
            await self._it.run_for(max(step["t"] - self._t - passed, 0.0))
        self._t, self._at = step["t"], self._it.clock.monotonic()
        self._together = bool(step.get("together"))

    async def _await(self, holds: Any, step: Plain, what: str) -> None:
        if not await self._it.until(holds, limit=_PATIENCE):
            self.problems.append(f"at {step['t']}: not seen: {what}")
        self._t, self._at = step["t"], self._it.clock.monotonic()

    # Observations

    async def _driver_call(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        method, driver, instance = step["method"], step["driver"], step.get("instance", "")
        if method.endswith(".send"):
            for each in self._it.drivers.drivers:
                if (each.name, each.instance) == (driver, instance):
                    each.send(step["answer"])
            await self._it.settle()
            return
        if normal_call(step) is None:
            return
        wanted = sum(1 for row in (*self._seen, step) if self._is_call(row, method, driver, instance))
        await self._await(
            lambda: self._count(method, driver, instance) >= wanted,
            step,
            f"{method} to {driver}{'/' + instance if instance else ''} number {wanted}",
        )

    def _is_call(self, row: Plain, method: str, driver: str, instance: str) -> bool:
        return (
            row.get("saw") == "driver call"
            and (row["method"], row["driver"], row.get("instance", "")) == (method, driver, instance)
            and normal_call(row) is not None
        )

    def _count(self, method: str, driver: str, instance: str) -> int:
        wanted = (method, driver, instance)
        return sum(1 for call in self._it.calls if (call.method, call.driver, call.instance) == wanted)

    async def _cri_call(self, step: Plain, ahead: Sequence[Plain]) -> None:
        self._infer_exit(step, ahead)
        key = (step["method"], step["pod"], step.get("container", ""))
        wanted = sum(1 for row in (*self._seen, step) if row.get("saw") == "CRI call" and _cri_key(row) == key)
        await self._await(
            lambda: sum(1 for call in self._it.cri if (call.method, call.pod, call.container) == key) >= wanted,
            step,
            f"{' '.join(filter(None, key))} number {wanted}",
        )

    def _infer_exit(self, step: Plain, ahead: Sequence[Plain]) -> None:
        """A container that is started again had ended; where no step tells of it, the states that follow do."""
        if step["method"] != "CreateContainer" or not step.get("attempt"):
            return
        pod, name = step["pod"], step["container"]
        running = self._it.runtime.running(pod, name)
        if running is None or running.attempt >= step["attempt"]:
            return
        for row in ahead:
            if row.get("saw") != "pod status" or row["pod"] != pod:
                continue
            for status in row["status"].get("containerStatuses") or ():
                ended = status["state"].get("terminated") or (status.get("lastState") or {}).get("terminated")
                if status["name"] == name and ended:
                    self._it.runtime.exit(ended["exitCode"], pod=pod, name=name)
                    return

    def _infer_exit_from(self, step: Plain) -> None:
        """As above, where the state was written down before the restart."""
        if "deletionTimestamp" in step["status"]:
            return
        for status in step["status"].get("containerStatuses") or ():
            ended, running = status["state"].get("terminated"), self._it.runtime.running(step["pod"], status["name"])
            if (
                ended
                and running
                and running.attempt == status["restartCount"]
                and not self._it.runtime.ends(running.id)
            ):
                self._it.runtime.exit(ended["exitCode"], pod=step["pod"], name=status["name"])

    async def _pod_status(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._actions.pod_row(step)
        self._infer_exit_from(step)
        normal = normal_of(self._it.flow)
        wanted = normal(step["status"])
        await self._await(
            lambda: any(normal(state) == wanted for state in self._it.states.get(step["pod"], ())),
            step,
            f"state of {step['pod']}: {brief(step['status'])}",
        )

    async def _event(self, step: Plain, ahead: Sequence[Plain]) -> None:
        """Waited for where it must come; compared at the end."""
        wanted = normal_event(event_of(step))
        if explains_missing_event(wanted):
            return
        del ahead
        await self._await(
            lambda: any(normal_event(each) == wanted for each in self._it.events),
            step,
            f"event {wanted[2]}: {wanted[3]}",
        )

    async def _claim(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._actions.claim_row(step)

    async def _claim_deleted(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._actions.claim_deleted(step)

    async def _slice(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        seen = (step["verb"], step["slice"]["name"])
        if step["verb"] == "ADDED":
            return  # the recorder's own write
        await self._await(lambda: seen in self._it.slices, step, f"slice {seen[1]} {seen[0]}")

    async def _slice_gone(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        there = {name for verb, name in self._it.slices if verb == "ADDED"}
        gone = {name for verb, name in self._it.slices if verb == "DELETED"}
        if there - gone:
            self.problems.append(f"at {step['t']}: slices are still there: {sorted(there - gone)}")

    async def _slice_there(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._pace(step)
        if any(verb == "DELETED" for verb, _ in self._it.slices):
            self.problems.append(f"at {step['t']}: a slice was deleted that should stay")

    async def _pod_resources(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._pace(step)
        assert self._it.agent is not None
        listing = self._it.agent.listing
        ours: Plain = {"List": [_message(each) for each in listing.all()]}
        recorded = step["podresources"]
        name, namespace = _asked(recorded)
        found = listing.one(name, namespace)
        if found is None:
            ours["Get"] = {"grpc": "UNKNOWN", "message": f"pod {name} in namespace {namespace} not found"}
        else:
            ours["Get"] = {"pod_resources": _message(found)}
        self.problems += compare_pod_resources(recorded, self._it.uids.recorded(ours), self._it.flow, step["t"])

    async def _health_file(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        await self._pace(step)
        path = self._it.paths.root / HEALTH_FILE
        content = json.loads(path.read_bytes()) if path.exists() else {}
        names = {driver.name for driver in self._it.drivers.drivers}
        ours = next((content[name] for name in names if name in content), None)
        for device in (ours or {}).get("Devices", {}).values():
            device["LastUpdated"] = "<time>"
        if ours != step["content"]:
            self.problems.append(f"at {step['t']}: {HEALTH_FILE}: recorded {step['content']}, ours {ours}")

    async def _agent_survives(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        """The kubelet did not start with a damaged checkpoint; ours runs, and the file is set aside."""
        await self._it.settle()
        self._it.check_alive()
        if not list(self._it.paths.root.glob(f"{FILE}.damaged-*")):
            self.problems.append(f"at {step['t']}: the damaged checkpoint was not set aside")

    async def _file_now(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        decode((self._it.paths.root / FILE).read_bytes())  # ours is whole again

    async def _pod(self, step: Plain, ahead: Sequence[Plain]) -> None:  # noqa: ARG002
        for pod in await self._it.client.list(PODS):
            if pod.view.status.qos_class != step["qosClass"]:
                self.problems.append(f"at {step['t']}: QoS class is {pod.view.status.qos_class}")

    async def _checkpoint(self, step: Plain) -> None:
        await self._pace(step)
        data = json.loads(json.loads((self._it.paths.root / FILE).read_bytes())["Data"])
        ours = self._it.uids.recorded(data["ClaimInfoStateList"] or [])
        key = lambda entry: str(entry["ClaimName"])  # noqa: E731
        theirs = sorted(step["checkpoint"], key=key)
        # The recorded kubelet served other pods too: any write of theirs brought along what was in memory.
        if theirs not in (sorted(ours, key=key), sorted(self._in_memory(), key=key)):
            self.problems.append(f"at {step['t']}: checkpoint: recorded {step['checkpoint']}, ours {ours}")

    def _in_memory(self) -> list[Plain]:
        if self._it.agent is None:
            return []
        data = json.loads(json.loads(encode(self._it.agent.records.all()))["Data"])
        entries: list[Plain] = self._it.uids.recorded(data["ClaimInfoStateList"])
        return entries

    def _bytes(self, step: Plain) -> None:
        """The recorded file, read and written by us, is the same to the byte."""
        raw = step["raw"].encode()
        records = None if b'StateList\\":null' in raw else decode(raw)
        if encode(records) != raw:
            self.problems.append(f"at {step['t']}: {encode(records)!r} is not {raw!r}")

    async def _other(self, step: Plain) -> None:
        saw = step["saw"]
        if saw.startswith("pod deleted"):
            await self._await(lambda: step["pod"] in self._it.deleted, step, f"pod {step['pod']} deleted")
        elif saw.startswith("kubelet /metrics lines"):
            await self._pace(step)
            self.problems += compare_metrics(step, self._it.metrics())
        elif saw.startswith("("):
            await self._pace(step)

    # The end

    async def _end_differently(self, ending: Ending) -> None:
        """The recording ends here for us; see that what must hold instead does."""
        await self._it.run_for(5.0)
        self._it.check_alive()
        if ending.event and not any(re.search(ending.event, event[3]) for event in self._it.events):
            self.problems.append(f"{ending.title}: no such event")
        if ending.phase and not all(states[-1]["phase"] == ending.phase for states in self._it.states.values()):
            self.problems.append(f"{ending.title}: the pod is not {ending.phase}")

    def _compare(self) -> None:
        it, steps = self._it, self._it.flow["steps"]
        self.problems += compare_calls(steps, it.calls, it.uids)
        self.problems += compare_cri(steps, it.cri)
        self.problems += compare_order(steps, it.merged, it.flow)
        self.problems += compare_states(it.flow, it.states)
        self.problems += compare_events(steps, it.events)


def causes_first(steps: list[Plain]) -> list[Plain]:
    """Steps of the same moment were written down in any order; here a cause comes before what it brings.

    A claim is reserved before its pod is bound, a pod is bound before it is scheduled, and deleted before it has a
    deletion timestamp. Pods that were bound in the same moment are bound before anything else happens. A driver reports
    health before a pod shows it.
    """
    ordered = _bound_together(_reports_first([dict(step) for step in steps]))
    steps = list(ordered)
    for step in steps:
        words = step.get("do", "").split()
        if words[:2] in (["bind", "pod"], ["delete", "pod"]):
            place = ordered.index(step)
            near = [row for row in ordered if abs(row["t"] - step["t"]) <= _JITTER]
            brought = [ordered.index(row) for row in near if _follows(row, words)]
            place = min([place, *brought])
            causes = [row for row in near if words[0] == "bind" and _reserves(row, words[2])]
            ordered = [row for row in ordered[:place] if row is not step and row not in causes] + [
                *sorted(causes, key=steps.index),
                step,
                *(row for row in ordered[place:] if row is not step and row not in causes),
            ]
    return ordered


def _reports_first(steps: list[Plain]) -> list[Plain]:
    ordered: list[Plain] = []
    for step in steps:
        place = len(ordered)
        if step.get("method", "").endswith(".send"):
            while (
                place
                and ordered[place - 1].get("saw") == "pod status"
                and step["t"] - ordered[place - 1]["t"] <= _JITTER
            ):
                place -= 1
        ordered.insert(place, step)
    return ordered


def _bound_together(steps: list[Plain]) -> list[Plain]:
    ordered = list(steps)
    last: Plain | None = None
    for step in steps:
        if not step.get("do", "").startswith("bind pod"):
            continue
        if last is not None and step["t"] - last["t"] <= _TOGETHER and _all_made(ordered, last, step):
            ordered.remove(step)
            ordered.insert(ordered.index(last) + 1, step)
            last["together"] = True
        last = step
    return ordered


def _all_made(steps: list[Plain], first: Plain, second: Plain) -> bool:
    """Whether the second pod and its claims were there before the first was bound."""
    pod = second["do"].split()[2]
    between = steps[steps.index(first) : steps.index(second)]
    return not any(row.get("saw") == "claim" or (row.get("pod") == pod and "status" in row) for row in between)


def _follows(row: Plain, words: list[str]) -> bool:
    if row.get("saw") != "pod status" or row["pod"] != words[2]:
        return False
    if words[0] == "delete":
        return "deletionTimestamp" in row["status"]
    return bool(row["status"]["conditions"])


def _reserves(row: Plain, pod: str) -> bool:
    return row.get("saw") == "claim" and any(each["name"] == pod for each in row.get("reservedFor") or ())


def _cri_key(row: Plain) -> tuple[str, str, str]:
    return row["method"], row["pod"], row.get("container", "")


def _asked(recorded: Plain) -> tuple[str, str]:
    if "pod_resources" in recorded["Get"]:
        found = recorded["Get"]["pod_resources"]
        return found["name"], found["namespace"]
    words = recorded["Get"]["message"].split()
    return words[1], words[4]


def _message(message: Any) -> Plain:
    made: Plain = MessageToDict(message, preserving_proto_field_name=True)
    return made


def event_of(step: Plain) -> tuple[str, str, str, str, str]:
    return step["object"], step["type"], step["reason"], step["message"], step.get("fieldPath", "")


def brief(state: Plain) -> str:
    return json.dumps(state)[:600]


def flows_of(paths: Sequence[Path]) -> Iterator[Plain]:
    for path in paths:
        yield from load(path)


_SAW = {
    "driver call": Player._driver_call,
    "CRI call": Player._cri_call,
    "pod status": Player._pod_status,
    "event": Player._event,
    "claim": Player._claim,
    "claim deleted from API": Player._claim_deleted,
    "slice": Player._slice,
    "ResourceSlice gone": Player._slice_gone,
    "ResourceSlice still there": Player._slice_there,
    "PodResources v1": Player._pod_resources,
    "dra_health_state file": Player._health_file,
    "kubelet process": Player._agent_survives,
    "kubelet process ended": Player._agent_survives,
    "file now": Player._file_now,
    "pod": Player._pod,
}
