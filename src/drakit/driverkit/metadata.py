"""Device metadata (KEP-5304): files that tell applications in a container about their devices.

In:  for the writer, a claim that is prepared; for the reader, the directory in the container.
Out: per request and driver one file with a stream of versions, newest first; `read_metadata` takes the first version
     that it knows.

Applications need nothing else of the kit: `from drakit.driverkit.metadata import all_metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from drakit.api import DeviceAttribute, NetworkDeviceData, base_request_name, from_plain, to_json
from drakit.base.errors import DecodeError
from drakit.base.structs import Model

GROUP = "metadata.resource.k8s.io"
VERSIONS = ("v1alpha1",)
"""The versions that are written, newest first."""
KIND = "DeviceMetadata"
ROOT = Path("/var/run/kubernetes.io/dra-device-attributes")
SUFFIX = "-metadata.json"
_KNOWN = frozenset(f"{GROUP}/{version}" for version in VERSIONS)
_ATTEMPTS = 50
_DECODER = json.JSONDecoder()


class MetadataObjectMeta(Model):
    name: str
    namespace: str
    uid: str
    generation: int


class DeviceInfo(Model):
    """What an application gets to know of one device; attributes are as the driver publishes them."""

    driver: str
    pool: str
    name: str
    attributes: Mapping[str, DeviceAttribute] = {}
    network_data: NetworkDeviceData | None = None


class RequestMetadata(Model):
    """`name` carries the alternative that was chosen, if there were any: `gpu/large`."""

    name: str
    devices: tuple[DeviceInfo, ...] = ()


class DeviceMetadata(Model):
    metadata: MetadataObjectMeta
    pod_claim_name: str | None = None
    requests: tuple[RequestMetadata, ...] = ()


class MetadataFile(msgspec.Struct, frozen=True):
    path: Path
    content: DeviceMetadata


def container_path(claim_name: str, pod_claim_name: str, request: str, driver: str, *, root: Path = ROOT) -> Path:
    """Where a container finds the file: by the claim's name, or by what the pod calls a claim made from a template."""
    kind, name = ("resourceclaimtemplates", pod_claim_name) if pod_claim_name else ("resourceclaims", claim_name)
    return root / kind / name / base_request_name(request) / f"{driver}{SUFFIX}"


def encode_metadata(content: DeviceMetadata, versions: Sequence[str] = VERSIONS) -> bytes:
    """One JSON object per version and line."""
    fields = to_json(content)[1:]
    heads = (f'{{"kind":"{KIND}","apiVersion":"{GROUP}/{version}",'.encode() for version in versions)
    return b"".join(head + fields + b"\n" for head in heads)


def decode_metadata(data: bytes) -> DeviceMetadata:
    """The first object of the stream that this program knows. Raise DecodeError."""
    seen = []
    for document in _documents(data):
        api_version = document.pop("apiVersion", "")
        if document.pop("kind", "") == KIND and api_version in _KNOWN:
            return from_plain(DeviceMetadata, document)
        seen.append(str(api_version))
    raise DecodeError(f"no version of {KIND} that this program knows: {', '.join(seen) or 'nothing is there'}")


def read_metadata(path: Path, *, read: Callable[[Path], bytes] = Path.read_bytes) -> DeviceMetadata:
    """Read one file. Raise OSError, or DecodeError.

    A driver changes the file in place, because it is mounted: what was read halfway is read again.
    """
    data = read(path)
    for _ in range(_ATTEMPTS):
        try:
            return decode_metadata(data)
        except DecodeError:
            again = read(path)
            # Unchanged between two reads: nobody is writing, so the file itself is damaged.
            if again == data:
                raise
            data = again
    return decode_metadata(data)


def all_metadata(root: Path = ROOT, *, claim: str = "", request: str = "") -> Iterator[MetadataFile]:
    """Every file below the directory, in order; only those of a claim (as the pod calls it) and request, if given."""
    for path in sorted(root.glob(f"*/{claim or '*'}/{request or '*'}/*{SUFFIX}")):
        yield MetadataFile(path, read_metadata(path))


def _documents(data: bytes) -> Iterator[dict[str, object]]:
    """JSON objects one after the other, with any white space between them."""
    text = data.decode(errors="replace")
    place = 0
    while (place := _skip_space(text, place)) < len(text):
        try:
            document, place = _DECODER.raw_decode(text, place)
        except ValueError as error:
            raise DecodeError(f"not JSON: {error}") from None
        if not isinstance(document, dict):
            raise DecodeError("expected an object")
        yield document


def _skip_space(text: str, place: int) -> int:
    while place < len(text) and text[place].isspace():
        place += 1
    return place
