"""Choose the representation that a client accepts.

In:  the Accept header.
Out: JSON, YAML, protobuf, a Table, partial metadata or aggregated discovery. 406 if the client accepts none of them.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from drakit.api.codec.protobuf import CONTENT_TYPE as PROTOBUF
from drakit.apiserver.failures import not_acceptable
from drakit.base.memo import remember_short

JSON = "application/json"
YAML = "application/yaml"
AVAILABLE = (
    "application/json, application/yaml, application/vnd.kubernetes.protobuf, "
    "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
)
_META_VERSIONS = ("v1", "v1beta1")
_TRANSFORMS = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
DISCOVERY_LIST = "APIGroupDiscoveryList"


class Representation(msgspec.Struct, frozen=True):
    """`transform` is empty, Table, PartialObjectMetadata, PartialObjectMetadataList or APIGroupDiscoveryList."""

    media_type: str = JSON
    transform: str = ""
    group: str = ""
    version: str = ""

    @property
    def content_type(self) -> str:
        """The content type of the response: discovery clients look for the parameters, others for the bare type."""
        if self.transform == DISCOVERY_LIST:
            return f"{self.media_type};g={self.group};v={self.version};as={self.transform}"
        return self.media_type

    @property
    def metadata_only(self) -> bool:
        return self.transform.startswith("PartialObjectMetadata")


PLAIN = Representation()


@remember_short(256, longest=1024)
def negotiate(accept: str, *, discovery: bool = False, objects: bool = True, protobuf: bool = False) -> Representation:
    """The first available entry, by descending `q`.

    Tables are for objects, the discovery list is for discovery. `protobuf` says that there is a message for the answer.
    """
    if not accept:
        return PLAIN
    for media, parameters in _entries(accept):
        found = _offer(media, parameters, discovery=discovery, objects=objects, protobuf=protobuf)
        if found is not None:
            return found
    raise not_acceptable(AVAILABLE)


def _entries(accept: str) -> list[tuple[str, dict[str, str]]]:
    entries = list(_split(accept))
    entries.sort(key=lambda entry: -_quality(entry[1]))
    return entries


def _split(accept: str) -> Iterator[tuple[str, dict[str, str]]]:
    for entry in accept.split(","):
        media, *rest = (part.strip() for part in entry.split(";"))
        if media:
            yield media.lower(), dict(part.partition("=")[::2] for part in rest if part)


def _quality(parameters: dict[str, str]) -> float:
    try:
        return float(parameters.get("q", "1"))
    except ValueError:
        return 0.0


def _offer(
    media: str, parameters: dict[str, str], *, discovery: bool, objects: bool, protobuf: bool
) -> Representation | None:
    if media in ("*/*", "application/*"):
        media = JSON
    if media not in (JSON, YAML) and not (protobuf and media == PROTOBUF):
        return None
    transform, group, version = parameters.get("as", ""), parameters.get("g", ""), parameters.get("v", "")
    if not transform:
        return Representation(media)
    if (
        discovery
        and media != PROTOBUF
        and transform == DISCOVERY_LIST
        and group == "apidiscovery.k8s.io"
        and version == "v2"
    ):
        return Representation(media, transform, group, version)
    # A Table has cells of any type, and so no message.
    if media == PROTOBUF and transform == "Table":
        return None
    known = transform in _TRANSFORMS and group == "meta.k8s.io" and version in _META_VERSIONS
    return Representation(media, transform, group, version) if objects and known else None
