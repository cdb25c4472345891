"""What the recorder did, done again.

In:  `do` steps, and those observations that are the recorder's own writes (claims, the scheduler's part of a status).
Out: the same on the stage. An action that nobody knows is an error, never passed over.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from drakit.client import CLAIMS, NAMESPACES, PODS, bind, metadata_of
from drakit.nodeagent.claims.checkpoint import FILE
from drakit.nodeagent.plugins.contract import PluginCallFailed
from tests.conformance.nodeflows.scripted import ScriptedDriver, go_code
from tests.conformance.nodeflows.stage import NAMESPACE, NODE, Stage

Plain = dict[str, Any]
Action = Callable[["Actions", Plain, "re.Match[str]"], Awaitable[None]]
_OTHERS = ("resourceClaimStatuses", "extendedResourceClaimStatus", "nodeAllocatableResourceClaimStatuses")


class UnknownAction(Exception):
    """The recording has an action that this harness cannot do."""


class Actions:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._manifests: list[Plain] = list(stage.flow["setup"]["manifests"])
        self._kept: bytes | None = None

    async def setup(self) -> None:
        """What is neither pod, claim nor slice is there from the start; those come when the recorder made them."""
        label = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
        await self._stage.client.patch_named(NAMESPACES, NAMESPACE, label)
        for manifest in self._manifests:
            if manifest["kind"] not in ("Pod", "ResourceClaim", "ResourceSlice"):
                await self._create(manifest)

    async def do(self, step: Plain) -> None:
        text = step["do"]
        for pattern, action in _ACTIONS:
            if found := re.search(pattern, text, re.IGNORECASE):
                await action(self, step, found)
                if not step.get("together"):
                    await self._stage.settle()
                return
        raise UnknownAction(text)

    # Objects

    async def _create(self, manifest: Plain) -> Any:
        kind = manifest["kind"].lower().removeprefix("resource") if manifest["kind"] != "Pod" else "pod"
        document = self._stage.uids.real({k: v for k, v in manifest.items() if k != "status"})
        made = await self._stage.client.create(document)
        self._stage.uids.learn(kind, manifest["metadata"]["name"], metadata_of(made).uid)
        return made

    def _take(self, kind: str, name: str) -> Plain | None:
        """The next manifest of that name; each is made once."""
        for manifest in self._manifests:
            if manifest["kind"] == kind and manifest["metadata"]["name"] == name:
                self._manifests.remove(manifest)
                return manifest
        return None

    async def pod_row(self, row: Plain) -> None:
        """The recorder made the pod, or wrote the part of its status that is not the agent's."""
        name, client = row["pod"], self._stage.client
        found = await client.find(PODS, name, namespace=NAMESPACE)
        if found is None:
            manifest = self._take("Pod", name)
            if manifest is None:
                return
            await self._create(manifest)
            found = await client.get(PODS, name, namespace=NAMESPACE)
        status = found.document.get("status") or {}
        wanted = self._stage.uids.real({key: row["status"][key] for key in _OTHERS if key in row["status"]})
        if change := {key: value for key, value in wanted.items() if status.get(key) != value}:
            await client.patch_status(found, change)
            await self._stage.settle()

    async def claim_row(self, row: Plain) -> None:
        """The recorder made, reserved or deleted the claim."""
        client, name = self._stage.client, row["claim"]
        found = await client.find(CLAIMS, name, namespace=NAMESPACE)
        if found is None:
            await self._make_claim(name)
        reserved = self._stage.uids.real(row.get("reservedFor") or [])
        found = await client.get(CLAIMS, name, namespace=NAMESPACE)
        now = [(each.resource, each.name, each.uid) for each in found.status.reserved_for]
        if [(each["resource"], each["name"], each["uid"]) for each in reserved] != now:
            await client.patch_status(found, {"reservedFor": reserved or None})
        if row.get("deleting") and found.metadata.deletion_timestamp is None:
            await client.delete(CLAIMS, name, namespace=NAMESPACE)
        await self._stage.settle()

    async def _make_claim(self, name: str) -> None:
        manifest = self._take("ResourceClaim", name)
        if manifest is None:
            raise UnknownAction(f"claim {name} appears, and there is no manifest of it")
        await self._create(manifest)
        allocation = (manifest.get("status") or {}).get("allocation") or self._allocation_in_answers(name)
        if allocation:
            found = await self._stage.client.get(CLAIMS, name, namespace=NAMESPACE)
            await self._stage.client.patch_status(found, {"allocation": self._stage.uids.real(allocation)})

    def _allocation_in_answers(self, name: str) -> Plain | None:
        """One recording lost the allocation of a claim; what its driver answered tells it."""
        for step in self._stage.flow["steps"]:
            answers = (step.get("answer") or {}) if step.get("method") == "NodePrepareResources" else {}
            devices = (answers.get("claims") or {}).get(f"<uid:claim/{name}>", {}).get("devices")
            if devices:
                results = [
                    {
                        "request": each["request_names"][0],
                        "driver": step["driver"],
                        "pool": each["pool_name"],
                        "device": each["device_name"],
                    }
                    for each in devices
                ]
                return {"devices": {"results": results}}
        return None

    async def claim_deleted(self, row: Plain) -> None:
        client, name = self._stage.client, row["claim"]
        found = await client.get(CLAIMS, name, namespace=NAMESPACE)
        await client.patch(found, {"metadata": {"finalizers": None}})
        if await client.find(CLAIMS, name, namespace=NAMESPACE) is not None:
            await client.delete(CLAIMS, name, namespace=NAMESPACE)
        await self._stage.settle()

    async def _bind(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        await self.pod_row({"pod": found[1], "status": {}})
        pod = await self._stage.client.get(PODS, found[1], namespace=NAMESPACE)
        await bind(self._stage.client, pod, NODE)

    async def _delete_pod(self, step: Plain, found: re.Match[str]) -> None:
        grace = (step.get("options") or {}).get("gracePeriodSeconds")
        if "force" in step["do"].lower():
            grace = 0
        await self._stage.client.delete(PODS, found["pod"], namespace=NAMESPACE, grace=grace)

    async def _make_slices(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for manifest in list(self._manifests):
            if manifest["kind"] == "ResourceSlice":
                self._manifests.remove(manifest)
                await self._create(manifest)

    async def _nothing(self, step: Plain, found: re.Match[str]) -> None:
        """Time passes, or the observations that follow say what was written; they are done again one by one."""

    # The agent and its files

    async def _stop_agent(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        await self._stage.stop_agent()

    async def _start_agent(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        await self._stage.stop_agent()
        await self._stage.start_agent()

    async def _remove_checkpoint(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        (self._stage.paths.root / FILE).unlink()

    async def _damage_checkpoint(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        path = self._stage.paths.root / FILE
        self._kept = self._kept or path.read_bytes()
        how = found[1].lower()
        damaged = {"json": b"{not json", "empty": b""}.get(how, _other_checksum(self._kept))
        path.write_bytes(damaged)

    async def _restore_checkpoint(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        await self._stage.stop_agent()
        if self._kept is None:
            raise UnknownAction("nothing was damaged before")
        (self._stage.paths.root / FILE).write_bytes(self._kept)
        await self._stage.start_agent()

    # The runtime

    async def _exit(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        self._stage.runtime.exit(int(found["code"]), name=(found["name"] or "").strip())

    async def _break_sandbox(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        self._stage.runtime.break_sandboxes(int(found[1] or 137))

    # Drivers

    def _drivers(self, text: str) -> list[ScriptedDriver]:
        """Those that an action means: by name, by instance, or all."""
        drivers = self._stage.drivers.drivers
        if instance := re.search(r"instance (\w+)", text):
            return [each for each in drivers if each.instance == instance[1]]
        named = [each for each in drivers if each.name in text]
        return named or list(drivers)

    async def _start_driver(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        text = step["do"]
        about = step.get("driver") or self._described(text)
        if about is not None:
            known = [d for d in self._stage.drivers.drivers if d.registration == about["registration_socket"]]
            driver = known[0] if known else self._new_driver(about, text)
            drivers = [driver]
        else:
            drivers = self._drivers(text)
        for driver in drivers:
            if "endpoint socket absent" not in text:
                driver.start_service()
            self._stage.directory.put(driver.registration, driver)

    def _described(self, text: str) -> Plain | None:
        """A driver that the step only describes: where its registration socket is, whose endpoint it has."""
        rows = [row for row in self._stage.flow["steps"] if row.get("method") == "GetInfo"]
        registry = "/var/lib/kubelet/plugins_registry"
        if "second registration socket" in text:
            row = next(row for row in rows if row.get("instance") == "b")
            return {**_about(row), "registration_socket": f"{registry}/{row['driver']}-b-reg.sock"}
        if "serve only the registration socket" in text:
            return {**_about(rows[0]), "registration_socket": f"{registry}/{rows[0]['driver']}-reg.sock"}
        named = re.match(r"start driver (\S+) with ", text)
        if named is None:
            return None
        name = named[1]
        row = next((row for row in rows if row["driver"] == name), {"driver": name, "answer": {}})
        place = "sub/" if "subdirectory" in text else "." if "leading dot" in text else ""
        suffix = "" if "without .sock" in text else ".sock"
        return {**_about(row), "registration_socket": f"{registry}/{place}{name}-reg{suffix}"}

    def _new_driver(self, about: Plain, text: str) -> ScriptedDriver:
        instance = re.search(r"instance (\w+)", text)
        called = instance[1] if instance else "b" if "second registration socket" in text else ""
        script = [
            row
            for row in self._stage.flow["steps"]
            if row.get("saw") == "driver call" and (row["driver"], row.get("instance", "")) == (about["name"], called)
        ]
        driver = ScriptedDriver(about["name"], called, about, script, self._stage.drivers)
        self._stage.drivers.drivers.append(driver)
        return driver

    async def _stop_driver(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        drivers = self._drivers(step["do"])
        for driver in drivers:
            self._stage.directory.remove(driver.registration)
        await self._stage.settle()  # the registration goes first: the agent closes what it has open
        for driver in drivers:
            driver.stop_service()

    async def _stop_service(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for driver in self._drivers(step["do"]):
            driver.stop_service()

    async def _start_service(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for driver in self._drivers(step["do"]):
            driver.start_service()

    async def _strand_driver(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for driver in self._drivers(step["do"]):
            driver.stop_service(stale=True)
            self._stage.directory.put(driver.registration, None)

    async def _end_stream(self, step: Plain, found: re.Match[str]) -> None:
        code = found["code"] or "EOF"
        error = None if code.upper() == "EOF" else PluginCallFailed(go_code(code), "aborted")
        for driver in self._drivers(step["do"]):
            driver.end_streams(error)

    async def _unregister(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for driver in self._drivers(step["do"]):
            self._stage.directory.remove(driver.registration)

    async def _register(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        for driver in self._drivers(step["do"]):
            self._stage.directory.put(driver.registration, driver)

    # The server

    async def _lose_server(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        self._stage.line.away = True

    async def _find_server(self, step: Plain, found: re.Match[str]) -> None:  # noqa: ARG002
        self._stage.line.away = False


def _other_checksum(data: bytes) -> bytes:
    """The same file with another last digit."""
    return data[:-2] + str((int(data[-2:-1]) + 1) % 10).encode() + b"}"


def _about(row: Plain) -> Plain:
    answer = row.get("answer") or {}
    name = row["driver"]
    return {
        "name": name,
        "type": answer.get("type", "DRAPlugin"),
        "versions": answer.get("supported_versions", ["v1.DRAPlugin"]),
        "endpoint": answer.get("endpoint") or f"/var/lib/kubelet/plugins/{name}/dra.sock",
    }


_ACTIONS: tuple[tuple[str, Action], ...] = (
    (r"^bind pod (\S+)", Actions._bind),
    (r"^(?:force )?delete pod (?P<pod>\S+)", Actions._delete_pod),
    (r"^create ResourceSlice", Actions._make_slices),
    (r"^stop kubelet, restore the file, start kubelet", Actions._restore_checkpoint),
    (r"^(?:stop|kill) kubelet", Actions._stop_agent),
    (r"^(?:re)?start (?:the )?kubelet", Actions._start_agent),
    (r"^remove dra_manager_state", Actions._remove_checkpoint),
    (r"^dra_manager_state: (\w+) broken", Actions._damage_checkpoint),
    (r"(?:stop|block|kill).*API ?server|API ?server (?:away|stops|down)", Actions._lose_server),
    (r"(?:start|unblock).*API ?server|API ?server (?:back|again|up)", Actions._find_server),
    (r"sandbox becomes NOTREADY(?:, container exits (\d+))?", Actions._break_sandbox),
    (r"containers? (?P<name>\S+ )?exits? (?:with )?(?P<code>\d+)", Actions._exit),
    (r"(?:ends|aborts|closes) the stream(?: with (?P<code>\w+))?", Actions._end_stream),
    (r"^report |^now silence|silence|^wait ", Actions._nothing),
    (r"socket files? (?:are|is) left", Actions._strand_driver),
    (r"^new servers|^second registration socket|^serve only the registration", Actions._start_driver),
    (r"^(?:stop|kill) dra\.sock|dra\.sock (?:goes|away|removed)", Actions._stop_service),
    (r"dra\.sock back|^(?:re)?start dra\.sock|^endpoint socket appears", Actions._start_service),
    (r"remove.*registration socket$|registration socket (?:only )?(?:removed|goes|gone|away)", Actions._unregister),
    (r"registration socket (?:is )?(?:back|again|appears)|put back.*registration socket", Actions._register),
    (r"driver (?:process )?(?:dies|crashes|exits)", Actions._stop_service),
    (r"^(?:stop|kill) (?:driver|instance)|driver stops|SIG(?:TERM|KILL) to (?:driver|instance)", Actions._stop_driver),
    (r"^(?:re)?start (?:driver|instance)|^driver (?:back|again|returns)", Actions._start_driver),
    (r"claim|reserv|status entry|allocat|finalizer|annotat|label", Actions._nothing),
)
"""The first that fits is done; claims come last, as other actions may mention them."""
