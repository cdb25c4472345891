"""Files that containers see: CDI specifications and device metadata."""

from __future__ import annotations

from drakit.conformance.cdi import CdiDevice, read_directory
from drakit.conformance.devicemetadata import check_metadata_file, metadata_mounts
from drakit.conformance.kubelet import ClaimAnswer
from drakit.conformance.rules import rule
from drakit.conformance.testbed import Testbed
from drakit.conformance.verdicts import Broken, NotApplicable

_NEEDS = ("registration", "slices-valid", "prepare")


@rule(
    "cdi-files",
    "CDI files are valid and have every id that was answered",
    why="A runtime passes over a file that it cannot read, and refuses a container with an id that it does not find.",
    needs=_NEEDS,
)
async def cdi_files(bed: Testbed) -> None:
    driver = await bed.driver()
    answer = await driver.prepare(await bed.claim())
    if problems := read_directory(bed.places.cdi).problems:
        raise Broken(str(problems[0]))
    if not _ids(answer):
        raise NotApplicable("the driver answers without CDI ids")
    _devices(bed, answer)


def _ids(answer: ClaimAnswer) -> list[str]:
    return [identifier for device in answer.devices for identifier in device.cdi_ids]


def _devices(bed: Testbed, answer: ClaimAnswer) -> list[CdiDevice]:
    directory = read_directory(bed.places.cdi)
    found: list[CdiDevice] = []
    for identifier in _ids(answer):
        devices = directory.find(identifier)
        # A runtime refuses an id that two files of the directory provide.
        if len(devices) != 1:
            files = ", ".join(each.file for each in devices) or "no file in the CDI directory"
            raise Broken(f"{identifier} is in {files}; it must be in exactly one")
        found += devices
    return found


@rule(
    "metadata-files",
    "device metadata is where applications look for it, and right",
    why="Applications find their devices by path and format, whichever driver made the file.",
    needs=(*_NEEDS, "unprepare", "cdi-files"),
)
async def metadata_files(bed: Testbed) -> None:
    driver = await bed.driver()
    claim = await bed.claim(choice=True)
    mounts = metadata_mounts(_devices(bed, await driver.prepare(claim)))
    if not mounts:
        raise NotApplicable("the driver mounts no device metadata")
    for mount in mounts:
        if wrong := list(check_metadata_file(mount, claim, bed.driver_name)):
            raise Broken(f"{mount.host.name} {'; '.join(wrong)}")
    await driver.unprepare(claim)
    for mount in mounts:
        if mount.host.exists():
            raise Broken(f"{mount.host.name} is still there after unprepare")
