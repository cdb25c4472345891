"""The files of a prepared claim: its CDI spec, and the metadata files that it mounts.

In:  the record of a claim.
Out: files, made from the record alone, so they can be made again at any time; and the CDI ids that the kubelet is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from drakit.api import base_request_name
from drakit.base.errors import Unavailable
from drakit.driverkit.cdi import ContainerEdits, Mount, SpecDevice, is_empty, qualified, spec_file, vendor_of
from drakit.driverkit.claims import PreparedDevice
from drakit.driverkit.metadata import (
    DeviceInfo,
    DeviceMetadata,
    MetadataObjectMeta,
    RequestMetadata,
    container_path,
    encode_metadata,
)
from drakit.driverkit.state.files import FileSystem
from drakit.driverkit.state.records import Preparation

CLASS = "claim"


class Artifacts:
    """One CDI file per claim: its devices appear together, and go together."""

    def __init__(
        self, driver: str, *, cdi_dir: Path, metadata_dir: Path, files: FileSystem, with_metadata: bool
    ) -> None:
        self._driver = driver
        self._kind = f"{vendor_of(driver)}/{CLASS}"
        self._cdi_dir = cdi_dir
        self._metadata_dir = metadata_dir
        self._files = files
        self._with_metadata = with_metadata

    def cdi_ids(self, record: Preparation) -> list[tuple[str, ...]]:
        """Per device of the record, in order. The first device of each request brings the metadata of the request."""
        described: set[str] = set()
        ids = []
        for index, device in enumerate(record.devices):
            own = () if is_empty(device.edits) else (qualified(self._kind, _device_name(record, index)),)
            request = base_request_name(device.request)
            about = self._with_metadata and request not in described
            described.add(request)
            extra = (qualified(self._kind, _metadata_name(record, request)),) if about else ()
            ids.append((*own, *device.cdi_device_ids, *extra))
        return ids

    async def write(self, record: Preparation) -> None:
        """Put every file on disk; the CDI file is the last one. Raise Unavailable, naming the file."""
        # The spec mounts the metadata files, so they must exist once a runtime can read it.
        await self.write_metadata(record)
        spec = self._spec(record)
        if spec is not None:
            await self._put(self.cdi_path(record.ref.uid), spec)

    async def restore(self, record: Preparation) -> bool:
        """Make again what is missing or was changed. Whether anything was."""
        changed = await self.write_metadata(record)
        spec = self._spec(record)
        path = self.cdi_path(record.ref.uid)
        if spec is not None and await self._read(path) != spec:
            await self._put(path, spec)
            changed = True
        return changed

    async def write_metadata(self, record: Preparation) -> bool:
        """Bring metadata files up to date. Whether any was not.

        One that is there is changed in place: a container that has it mounted would never see another file.
        """
        changed = False
        for request, content in self._metadata(record).items():
            path = self._metadata_path(record, request)
            found = await self._read(path)
            if found is None:
                await self._put(path, content)
            elif found != content:
                await self._change(path, content)
            changed = changed or found != content
        return changed

    async def remove(self, uid: str) -> None:
        """Remove all files of a claim; nothing when there are none. Raise Unavailable."""
        for path, remove in (
            (self.cdi_path(uid), self._files.remove),
            (self._metadata_dir / uid, self._files.remove_tree),
        ):
            try:
                await remove(path)
            except OSError as error:
                raise Unavailable(f"cannot remove {path}: {error.strerror}") from error

    async def uids(self) -> list[str]:
        """Claims that have a CDI file or metadata."""
        prefix, suffix = f"{self._driver}-", ".json"
        specs = await self._files.names(self._cdi_dir)
        cut = slice(len(prefix), -len(suffix))
        named = [name for name in specs if name.startswith(prefix) and name.endswith(suffix)]
        uids = {name[cut] for name in named if await self._is_ours(self._cdi_dir / name)}
        return sorted(uids | set(await self._files.names(self._metadata_dir)))

    async def _is_ours(self, path: Path) -> bool:
        """The directory has files of other drivers, whose names may begin as ours does."""
        try:
            spec = msgspec.json.decode(await self._files.read(path) or b"")
        except msgspec.DecodeError:
            return False
        return isinstance(spec, dict) and spec.get("kind") == self._kind

    def cdi_path(self, uid: str) -> Path:
        return self._cdi_dir / f"{self._driver}-{uid}.json"

    def _metadata_path(self, record: Preparation, request: str) -> Path:
        # By uid: a new claim of the same name never shares a file with one that is still being removed.
        return self._metadata_dir / record.ref.uid / request / "metadata.json"

    def _spec(self, record: Preparation) -> bytes | None:
        devices = list(self._cdi_devices(record))
        return spec_file(self._kind, devices) if devices else None

    def _cdi_devices(self, record: Preparation) -> Iterator[SpecDevice]:
        for index, device in enumerate(record.devices):
            if not is_empty(device.edits):
                yield SpecDevice(name=_device_name(record, index), edits=device.edits)
        if self._with_metadata:
            for request in dict.fromkeys(base_request_name(each.request) for each in record.devices):
                edits = ContainerEdits(mounts=(self._mount(record, request),))
                yield SpecDevice(name=_metadata_name(record, request), edits=edits)

    def _mount(self, record: Preparation, request: str) -> Mount:
        inside = container_path(record.ref.name, record.pod_claim_name, request, self._driver)
        return Mount(host_path=str(self._metadata_path(record, request)), container_path=str(inside))

    def _metadata(self, record: Preparation) -> Mapping[str, bytes]:
        """By request, without the alternative: what its file says."""
        if not self._with_metadata:
            return {}
        by_request: dict[str, list[PreparedDevice]] = {}
        for device in record.devices:
            by_request.setdefault(base_request_name(device.request), []).append(device)
        return {name: encode_metadata(self._about(record, devices)) for name, devices in by_request.items()}

    def _about(self, record: Preparation, devices: list[PreparedDevice]) -> DeviceMetadata:
        names = dict.fromkeys(device.request for device in devices)
        ref = record.ref
        return DeviceMetadata(
            metadata=MetadataObjectMeta(
                name=ref.name, namespace=ref.namespace, uid=ref.uid, generation=record.generation
            ),
            pod_claim_name=record.pod_claim_name or None,
            requests=tuple(
                RequestMetadata(name=name, devices=tuple(self._info(each) for each in devices if each.request == name))
                for name in names
            ),
        )

    def _info(self, device: PreparedDevice) -> DeviceInfo:
        return DeviceInfo(
            driver=self._driver,
            pool=device.pool,
            name=device.device,
            attributes=device.attributes,
            network_data=device.network_data,
        )

    async def _put(self, path: Path, content: bytes) -> None:
        try:
            await self._files.write(path, content)
        except OSError as error:
            raise Unavailable(f"cannot write {path}: {error.strerror}") from error

    async def _change(self, path: Path, content: bytes) -> None:
        try:
            await self._files.overwrite(path, content)
        except OSError as error:
            raise Unavailable(f"cannot write {path}: {error.strerror}") from error

    async def _read(self, path: Path) -> bytes | None:
        try:
            return await self._files.read(path)
        except OSError as error:
            raise Unavailable(f"cannot read {path}: {error.strerror}") from error


def _device_name(record: Preparation, index: int) -> str:
    """Unique within the claim, which may have one device twice: as two shares, or with adminAccess."""
    return f"{record.ref.uid}-{index}-{record.devices[index].device}"


def _metadata_name(record: Preparation, request: str) -> str:
    return f"{record.ref.uid}_{request}"
