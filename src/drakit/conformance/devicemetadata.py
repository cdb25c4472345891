"""Device metadata files (KEP-5304): where they are mounted, and what is wrong with them.

In:  the CDI edits of a prepared claim, and the claim.
Out: the files, and every rule of the protocol that one of them breaks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from json import JSONDecodeError, JSONDecoder
from pathlib import Path
from typing import Any

import msgspec

from drakit.api import ResourceClaim, base_request_name
from drakit.conformance.cdi import CdiDevice

ROOT = "/var/run/kubernetes.io/dra-device-attributes"
GROUP = "metadata.resource.k8s.io"
KNOWN_VERSION = f"{GROUP}/v1alpha1"


class MetadataMount(msgspec.Struct, frozen=True):
    host: Path
    container: str
    options: tuple[str, ...]


def metadata_mounts(devices: Iterable[CdiDevice]) -> list[MetadataMount]:
    found = {}
    for device in devices:
        for mount in device.mounts():
            if str(mount.get("containerPath", "")).startswith(f"{ROOT}/"):
                options = tuple(mount.get("options") or ())
                found[mount["containerPath"]] = MetadataMount(Path(mount["hostPath"]), mount["containerPath"], options)
    return list(found.values())


def check_metadata_file(mount: MetadataMount, claim: ResourceClaim, driver: str) -> Iterator[str]:
    """What is wrong, in sentences without their subject."""
    wanted = {path_for(claim, each.request, driver) for each in _own_results(claim, driver)}
    if mount.container not in wanted:
        yield f"is mounted at {mount.container} instead of {' or '.join(sorted(wanted))}"
    if "ro" not in mount.options:
        yield "is not mounted read-only"
    try:
        documents = read_documents(mount.host.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, JSONDecodeError) as error:
        yield f"cannot be read: {error}"
        return
    if not any(each.get("apiVersion") == KNOWN_VERSION for each in documents):
        yield f"has no object of version {KNOWN_VERSION}"
    for document in documents:
        yield from _check_document(document, claim, driver)


def path_for(claim: ResourceClaim, request: str, driver: str) -> str:
    return f"{ROOT}/resourceclaims/{claim.metadata.name}/{base_request_name(request)}/{driver}-metadata.json"


def read_documents(text: str) -> list[dict[str, Any]]:
    """A stream of JSON objects, one per version."""
    decoder, position, found = JSONDecoder(), 0, []
    while text[position:].strip():
        position += len(text[position:]) - len(text[position:].lstrip())
        document, position = decoder.raw_decode(text, position)
        if not isinstance(document, dict):
            raise JSONDecodeError("no object", text, position)
        found.append(document)
    return found


def _check_document(document: Mapping[str, Any], claim: ResourceClaim, driver: str) -> Iterator[str]:
    version = document.get("apiVersion", "")
    if document.get("kind") != "DeviceMetadata" or not str(version).startswith(f"{GROUP}/"):
        yield f"has an object of kind {document.get('kind')!r} and version {version!r}"
        return
    metadata = document.get("metadata") or {}
    of = claim.metadata
    for field, wanted in (("name", of.name), ("namespace", of.namespace), ("uid", of.uid)):
        if metadata.get(field) != wanted:
            yield f"has metadata.{field} {metadata.get(field)!r} instead of {wanted!r}"
    if not (isinstance(metadata.get("generation"), int) and metadata["generation"] > 0):
        yield f"has metadata.generation {metadata.get('generation')!r}, no number above zero"
    told = {
        (request.get("name"), device.get("driver"), device.get("pool"), device.get("name"))
        for request in document.get("requests") or ()
        for device in request.get("devices") or ()
    }
    # With the alternative: metadata names `request/subrequest`, other than the answer to the kubelet.
    given = {(each.request, each.driver, each.pool, each.device) for each in _own_results(claim, driver)}
    if told - given:
        yield f"names {_words(told - given)}, which the claim was not given"
    if given - told:
        yield f"does not name {_words(given - told)}"


def _own_results(claim: ResourceClaim, driver: str) -> list[Any]:
    allocation = claim.status.allocation
    return [each for each in allocation.devices.results if each.driver == driver] if allocation else []


def _words(found: Iterable[tuple[Any, ...]]) -> str:
    return ", ".join(f"{pool}/{device} for request {request}" for request, _, pool, device in sorted(map(_text, found)))


def _text(parts: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(str, parts))
