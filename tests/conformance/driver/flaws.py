"""One broken driver per rule: the plain driver with a single method gone wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from grpc import aio

from drakit.client import NotFound
from drakit.pluginapi import dra_v1_pb2, dra_v1_pb2_grpc, health_v1alpha1_pb2, registration_pb2
from tests.conformance.driver.plaindriver import NAME, PlainDriver, Plugin
from tests.conformance.driver.sockets import leave_stale_socket


class IsNoDRAPlugin(PlainDriver):
    type = "DevicePlugin"


class GivesUpWhenRefused(PlainDriver):
    def notified(self, error: str) -> None:
        super().notified(error)
        if error:
            self._ending = asyncio.create_task(self.abort())


class ListsWhatItDoesNotServe(PlainDriver):
    def add_services(self, server: aio.Server) -> None:
        add_v1: Any = dra_v1_pb2_grpc.add_DRAPluginServicer_to_server
        add_v1(Plugin(self, dra_v1_pb2), server)


class PublishesAWrongName(PlainDriver):
    def pools(self) -> list[dict[str, Any]]:
        return [self.slice("a", [{"name": "Device_Zero"}], 1)]


class PromisesASliceTooMany(PlainDriver):
    def slice(self, suffix: str, devices: Sequence[dict[str, Any]], count: int) -> dict[str, Any]:
        return super().slice(suffix, devices, count + 1)


class NamesNoOwner(PlainDriver):
    async def owner(self) -> list[dict[str, Any]]:
        return []


class AnswersWithoutDevices(PlainDriver):
    async def prepare_one(self, claim: Any) -> list[dict[str, Any]]:
        await super().prepare_one(claim)
        return []


class AnswersOtherwiseTheSecondTime(PlainDriver):
    """Only when the first call is over: calls at once, and calls after a restart, are answered well."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._done: set[str] = set()

    async def answer(self, claim: Any) -> dict[str, Any]:
        again = claim.uid in self._done
        answer = await super().answer(claim)
        self._done.add(claim.uid)
        for device in answer.get("devices", ()) if again else ():
            device["cdi_device_ids"].append(f"{NAME}/device=more")
        return answer

    async def unprepare_one(self, claim: Any) -> str:
        self._done.discard(claim.uid)
        return await super().unprepare_one(claim)


class RefusesWhileItIsBusy(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._busy: set[str] = set()

    async def answer(self, claim: Any) -> dict[str, Any]:
        if claim.uid in self._busy:
            return {"error": "is being prepared by another call"}
        self._busy.add(claim.uid)
        try:
            return await super().answer(claim)
        finally:
            self._busy.discard(claim.uid)


class NamesTheSubrequest(PlainDriver):
    def request_name(self, request: str) -> str:
        return request


class TakesEveryDeviceForItsOwn(PlainDriver):
    def is_own(self, result: dict[str, Any]) -> bool:
        return True


class PreparesWhatIsNotThere(PlainDriver):
    async def answer(self, claim: Any) -> dict[str, Any]:
        try:
            await self.fetch(claim)
        except NotFound:
            return {"devices": []}
        except ValueError:
            pass
        return await super().answer(claim)


class DoesNotLookAtTheUid(PlainDriver):
    def check(self, claim: Any, found: dict[str, Any]) -> None:
        claim.uid, uid = found["metadata"]["uid"], claim.uid
        super().check(claim, found)
        claim.uid = uid


class PreparesWhatNobodyAllocated(PlainDriver):
    async def answer(self, claim: Any) -> dict[str, Any]:
        answer = await super().answer(claim)
        return {"devices": []} if "not allocated" in answer.get("error", "") else answer


class FailsTheWholeCall(PlainDriver):
    async def prepare(self, claims: Sequence[Any]) -> dict[str, Any]:
        answers = await super().prepare(claims)
        for each in answers.values():
            if "error" in each:
                raise RuntimeError(each["error"])
        return answers


class LeavesItsFiles(PlainDriver):
    def remove_files(self, uid: str) -> None:
        return


class UnpreparesOnce(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._done: set[str] = set()

    async def prepare_one(self, claim: Any) -> list[dict[str, Any]]:
        self._done.discard(claim.uid)
        return await super().prepare_one(claim)

    async def unprepare_one(self, claim: Any) -> str:
        if claim.uid in self._done:
            return "is not prepared any more"
        self._done.add(claim.uid)
        return await super().unprepare_one(claim)


class UnpreparesOnlyWhatItKnows(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._known: set[str] = set()

    async def prepare_one(self, claim: Any) -> list[dict[str, Any]]:
        self._known.add(claim.uid)
        return await super().prepare_one(claim)

    async def unprepare_one(self, claim: Any) -> str:
        if claim.uid not in self._known and not self.state(claim.uid).exists():
            return "has never been prepared"
        return await super().unprepare_one(claim)


class UnpreparesOnlyWhatIsThere(PlainDriver):
    async def unprepare_one(self, claim: Any) -> str:
        if self.state(claim.uid).exists():
            try:
                await self.fetch(claim)
            except NotFound as error:
                return str(error)
        return await super().unprepare_one(claim)


class WritesABadVariable(PlainDriver):
    def edits(self, uid: str, device: dict[str, Any]) -> dict[str, Any]:
        return {**super().edits(uid, device), "env": ["PLAIN_DEVICE"]}


class ForgetsTheGeneration(PlainDriver):
    def metadata(self, devices: list[dict[str, Any]]) -> dict[str, Any]:
        return {**super().metadata(devices), "metadata": devices[0]["claim"]}


class TellsOfAStranger(PlainDriver):
    def health_message(self, sick: bool) -> health_v1alpha1_pb2.NodeWatchResourcesResponse:
        message = super().health_message(sick)
        message.devices[0].device.device_name = "device-9"
        return message


class TellsOfNoSickness(PlainDriver):
    def health_message(self, sick: bool) -> health_v1alpha1_pb2.NodeWatchResourcesResponse:
        return super().health_message(False)


class DoesOneThingAtATime(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._one = asyncio.Lock()

    async def info(self) -> registration_pb2.PluginInfo:
        async with self._one:
            return await super().info()

    async def prepare(self, claims: Sequence[Any]) -> dict[str, Any]:
        async with self._one:
            return await super().prepare(claims)


class IsStuckAfterACancelledCall(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._stuck: set[str] = set()

    async def answer(self, claim: Any) -> dict[str, Any]:
        if claim.uid in self._stuck:
            return {"error": "is being prepared"}
        try:
            return await super().answer(claim)
        except asyncio.CancelledError:
            self._stuck.add(claim.uid)
            raise


class RemembersNothing(PlainDriver):
    """Its state is in a file of this instance, and what it answers has the instance's name in it."""

    def state(self, uid: str) -> Any:
        return self.home / "state" / f"{self.endpoint.stem}-{uid}.json"

    async def devices_of(self, claim: Any) -> list[dict[str, Any]]:
        return [{**each, "cdi": f"{self.endpoint.stem}-{each['cdi']}"} for each in await super().devices_of(claim)]


class StaysInTheMiddle(PlainDriver):
    """A mark says that a claim is being prepared; a process that is killed leaves it behind."""

    killed = False

    async def abort(self) -> None:
        self.killed = True
        await super().abort()

    async def prepare_one(self, claim: Any) -> list[dict[str, Any]]:
        mark = self.home / f"{claim.uid}.mark"
        if mark.exists():
            raise ValueError("is being prepared")
        mark.touch()
        try:
            return await super().prepare_one(claim)
        finally:
            if not self.killed:
                mark.unlink()


class TrustsItsFiles(PlainDriver):
    def restore(self, uid: str, devices: list[dict[str, Any]]) -> None:
        return


class LeavesItsSocket(PlainDriver):
    async def stop(self) -> int:
        code = await super().stop()
        leave_stale_socket(self.registration)
        return code


class TakesTheOthersSocketsAlong(PlainDriver):
    async def stop(self) -> int:
        code = await super().stop()
        for path in self.registration.parent.iterdir():
            path.unlink()
        return code


class TurnsItsDevicesRound(PlainDriver):
    """Every second instance lists them the other way."""

    instances = 0

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        type(self).instances += 1
        self._turned = bool(self.instances % 2)

    def pools(self) -> list[dict[str, Any]]:
        pools = super().pools()
        for each in pools if self._turned else ():
            each["spec"]["devices"].reverse()
        return pools


class LeavesEdits(PlainDriver):
    async def repair(self, found: dict[str, Any], wanted: dict[str, Any]) -> None:
        return


class PublishesOnce(PlainDriver):
    _published = False

    async def put_right(self, owner: list[dict[str, Any]]) -> str:
        since = await super().put_right(owner)
        self._published = True
        return since

    async def create(self, wanted: dict[str, Any]) -> None:
        if not self._published:
            await super().create(wanted)


class LeavesStaleSlices(PlainDriver):
    async def remove_stale(self, name: str) -> None:
        return


class TakesItsSlicesAlong(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "remove": True})


class KeepsItsSlices(PlainDriver):
    def __init__(self, **given: Any) -> None:
        super().__init__(**{**given, "remove": False})


FLAWS: dict[str, type[PlainDriver]] = {
    "registration": IsNoDRAPlugin,
    "registration-repeated": GivesUpWhenRefused,
    "service-versions": ListsWhatItDoesNotServe,
    "slices-valid": PublishesAWrongName,
    "slices-complete": PromisesASliceTooMany,
    "slices-owned": NamesNoOwner,
    "prepare": AnswersWithoutDevices,
    "prepare-repeated": AnswersOtherwiseTheSecondTime,
    "prepare-concurrent": RefusesWhileItIsBusy,
    "prepare-subrequest": NamesTheSubrequest,
    "prepare-own-devices": TakesEveryDeviceForItsOwn,
    "prepare-unknown-claim": PreparesWhatIsNotThere,
    "prepare-wrong-uid": DoesNotLookAtTheUid,
    "prepare-unallocated": PreparesWhatNobodyAllocated,
    "prepare-partial-failure": FailsTheWholeCall,
    "unprepare": LeavesItsFiles,
    "unprepare-repeated": UnpreparesOnce,
    "unprepare-without-prepare": UnpreparesOnlyWhatItKnows,
    "unprepare-deleted-claim": UnpreparesOnlyWhatIsThere,
    "cdi-files": WritesABadVariable,
    "metadata-files": ForgetsTheGeneration,
    "health-stream": TellsOfAStranger,
    "health-change": TellsOfNoSickness,
    "slow-call": DoesOneThingAtATime,
    "cancelled-call": IsStuckAfterACancelledCall,
    "restart": RemembersNothing,
    "restart-during-prepare": StaysInTheMiddle,
    "reboot": TrustsItsFiles,
    "stop": LeavesItsSocket,
    "two-instances": TakesTheOthersSocketsAlong,
    "slices-stable": TurnsItsDevicesRound,
    "slices-repaired": LeavesEdits,
    "slices-published-again": PublishesOnce,
    "slices-stale-removed": LeavesStaleSlices,
    "slices-kept": TakesItsSlicesAlong,
    "slices-removed-on-request": KeepsItsSlices,
}
"""The rule that each of them breaks, and no other."""
