"""Where the bytes of a PersistentVolume are: one source out of many, each with what it cannot do without."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from drakit.base import names
from drakit.base.fields import FieldError, Path, forbidden, invalid, not_supported, required, too_long
from drakit.validation.fields.documentrules import check_name, check_words

Source = Mapping[str, Any]

_LONGEST_DRIVER = 63
_LONGEST_PORTAL = 64
_HOST_PATH_TYPES = (
    "", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket",
)  # fmt: skip
_PARTITION = "must be between 1 and 255, inclusive"
_UNIT = "must be between 0 and 255, inclusive"
_IQN = {
    "iqn": re.compile(r"iqn\.\d{4}-\d{2}\.[A-Za-z0-9.-]+:[^,;*&$|\s]+$", re.ASCII),
    "eui": re.compile(r"eui.[A-Za-z0-9]{16}$"),
    "naa": re.compile(r"naa.[A-Za-z0-9]{32}$"),
}
_PAIRS = "must be a host:port pair or multiple pairs separated by commas"
_MANAGED = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
_BLOB = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_CSI_SECRETS = (
    "controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef",
)  # fmt: skip


def check_sources(spec: Source, name: str, path: Path) -> Iterator[FieldError]:
    """Exactly one source, and what is in it. `name` is the volume's."""
    given = [source for source in SOURCES if spec.get(source) is not None]
    if not given:
        yield required(path, "must specify a volume type")
        return
    shown = {"gcePersistentDisk": "persistentDisk"}
    yield from SOURCES[given[0]](spec[given[0]], path / shown.get(given[0], given[0]))
    if given[0] == "iscsi":
        yield from _check_portal(spec["iscsi"], name, path / "iscsi")
    if given[0] == "local" and spec.get("nodeAffinity") is None:
        yield required(path / "nodeAffinity", "Local volume requires node affinity")
    for extra in given[1:]:
        if extra == "flexVolume":  # upstream looks into it all the same
            yield from _check_flex(spec[extra], path / extra)
        else:
            yield forbidden(path / {"cephfs": "cephFS"}.get(extra, extra), "may not specify more than 1 volume type")


def check_csi_driver_name(name: Any, path: Path) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    if len(name) > _LONGEST_DRIVER:
        yield too_long(path, _LONGEST_DRIVER)
    yield from (invalid(path, name, message) for message in names.check_dns_subdomain(str(name).lower()))


def check_needed(*fields: str) -> Callable[[Source, Path], Iterator[FieldError]]:
    def check(source: Source, path: Path) -> Iterator[FieldError]:
        return (required(path / field) for field in fields if not source.get(field))

    return check


def check_no_backsteps(text: str, path: Path) -> Iterator[FieldError]:
    if ".." in text.split("/"):
        yield invalid(path, text, "must not contain '..'")


def _check_host_path(source: Source, path: Path) -> Iterator[FieldError]:
    if not source.get("path"):
        yield required(path / "path")
        return
    yield from check_no_backsteps(source["path"], path / "path")
    if source.get("type") is not None:
        yield from check_words(source["type"], _HOST_PATH_TYPES, path / "type")


def _check_disk(field: str) -> Callable[[Source, Path], Iterator[FieldError]]:
    def check(source: Source, path: Path) -> Iterator[FieldError]:
        if not source.get(field):
            yield required(path / field)
        partition = source.get("partition") or 0
        if not 0 <= partition <= 255:
            yield invalid(path / "partition", partition, _PARTITION)

    return check


def _check_nfs(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("server", "path")(source, path)
    if not (source.get("path") or "").startswith("/"):
        yield invalid(path / "path", source.get("path") or "", "must be an absolute path")


def _check_gluster(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("endpoints", "path")(source, path)
    namespace = source.get("endpointsNamespace")
    if namespace == "":
        detail = "if the endpointnamespace is set, it must be a valid namespace name"
        yield invalid(path / "endpointsNamespace", namespace, detail)
    elif namespace is not None:
        yield from check_name(namespace, names.check_dns_label, path / "endpointsNamespace")


def _check_flocker(source: Source, path: Path) -> Iterator[FieldError]:
    name, uuid = source.get("datasetName") or "", source.get("datasetUUID") or ""
    if not name and not uuid:
        yield required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        yield invalid(path, "resource", "datasetName and datasetUUID can not be specified simultaneously")
    if "/" in name:
        yield invalid(path / "datasetName", name, "must not contain '/'")


def _check_quobyte(source: Source, path: Path) -> Iterator[FieldError]:
    registry = source.get("registry") or ""
    if not registry:
        yield required(path / "registry", _PAIRS)
    elif len(source.get("tenant") or "") > 64:
        yield required(path / "tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if not re.fullmatch(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*", pair):
                yield invalid(path / "registry", registry, _PAIRS)
    yield from check_needed("volume")(source, path)


def _check_iscsi(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("targetPortal", "iqn")(source, path)
    if source.get("iqn"):
        yield from _check_iqn(source["iqn"], path / "iqn")
    unit = source.get("lun") or 0
    if not 0 <= unit <= 255:
        yield invalid(path / "lun", unit, _UNIT)
    secret = source.get("secretRef")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and secret is None:
        yield required(path / "secretRef")
    if secret is not None and not secret.get("name"):
        yield required(path / "secretRef" / "name")
    if source.get("initiatorName") is not None:
        yield from _check_iqn(source["initiatorName"], path / "initiatorname")


def _check_portal(source: Source, name: str, path: Path) -> Iterator[FieldError]:
    portal = source.get("targetPortal") or ""
    if source.get("initiatorName") is not None and len(f"{name}:{portal}") > _LONGEST_PORTAL:
        detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if "
        yield invalid(path / "targetportal", portal, f"{detail}iscsi.initiatorName is specified.")


def _check_iqn(name: str, path: Path) -> Iterator[FieldError]:
    form = _IQN.get(name[:3])
    if form is None or not form.match(name):
        yield invalid(path, name, "must be valid format")


def _check_cinder(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("volumeID")(source, path)
    if source.get("secretRef") is not None:
        yield from check_needed("name", "namespace")(source["secretRef"], path / "secretRef")


def _check_fibre(source: Source, path: Path) -> Iterator[FieldError]:
    targets, ids, unit = source.get("targetWWNs"), source.get("wwids"), source.get("lun")
    if not targets and not ids:
        yield required(path / "targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and ids:
        detail = "targetWWNs and wwids can not be specified simultaneously"
        yield invalid(path / "targetWWNs", targets, detail)
    if targets and unit is None:
        yield required(path / "lun", "lun is required if targetWWNs is specified")
    elif targets and unit is not None and not 0 <= unit <= 255:
        yield invalid(path / "lun", unit, _UNIT)


def _check_flex(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("driver")(source, path)
    for key in source.get("options") or ():
        domain = "." + key.split("/", 1)[0].lower()
        if domain.endswith((".kubernetes.io", ".k8s.io")):
            yield invalid((path / "options").key(key), key, "kubernetes.io and k8s.io namespaces are reserved")


def _check_azure_file(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("secretName", "shareName")(source, path)
    if source.get("secretNamespace") == "":
        yield required(path / "secretNamespace")


def _check_azure_disk(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("diskName", "diskURI")(source, path)
    kind, address = source.get("kind"), source.get("diskURI") or ""
    if source.get("cachingMode") is not None:
        yield from check_words(source["cachingMode"], ("None", "ReadOnly", "ReadWrite"), path / "cachingMode")
    if kind is not None:
        yield from check_words(kind, ("Dedicated", "Managed", "Shared"), path / "kind")
    if kind == "Managed" and not address.startswith("/subscriptions/"):
        yield not_supported(path / "diskURI", address, (_MANAGED,))
    if kind not in (None, "Managed") and not address.startswith("https://"):
        yield not_supported(path / "diskURI", address, (_BLOB,))


def _check_local(source: Source, path: Path) -> Iterator[FieldError]:
    if not source.get("path"):
        yield required(path / "path")
    else:
        yield from check_no_backsteps(source["path"], path / "path")


def _check_storageos(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_needed("volumeName")(source, path)
    for field in ("volumeName", "volumeNamespace"):
        if source.get(field):
            yield from check_name(source[field], names.check_dns_label, path / field)
    if source.get("secretRef") is not None:
        yield from check_needed("name", "namespace")(source["secretRef"], path / "secretRef")


def _check_csi(source: Source, path: Path) -> Iterator[FieldError]:
    yield from check_csi_driver_name(source.get("driver"), path / "driver")
    yield from check_needed("volumeHandle")(source, path)
    for field in _CSI_SECRETS:
        secret = source.get(field)
        if secret is None:
            continue
        for part, rule in (("name", names.check_dns_subdomain), ("namespace", names.check_dns_label)):
            yield from check_needed(part)(secret, path / field)
            if secret.get(part):
                yield from check_name(secret[part], rule, path / field / part)


SOURCES: Mapping[str, Callable[[Source, Path], Iterator[FieldError]]] = {
    "hostPath": _check_host_path,
    "gcePersistentDisk": _check_disk("pdName"),
    "awsElasticBlockStore": _check_disk("volumeID"),
    "glusterfs": _check_gluster,
    "flocker": _check_flocker,
    "nfs": _check_nfs,
    "rbd": check_needed("monitors", "image"),
    "quobyte": _check_quobyte,
    "cephfs": check_needed("monitors"),
    "iscsi": _check_iscsi,
    "cinder": _check_cinder,
    "fc": _check_fibre,
    "flexVolume": _check_flex,
    "azureFile": _check_azure_file,
    "vsphereVolume": check_needed("volumePath"),
    "photonPersistentDisk": check_needed("pdID"),
    "portworxVolume": check_needed("volumeID"),
    "azureDisk": _check_azure_disk,
    "scaleIO": check_needed("gateway", "system", "volumeName"),
    "local": _check_local,
    "storageos": _check_storageos,
    "csi": _check_csi,
}
"""In the order in which Kubernetes looks for them: of several the first is looked into, the others are refused."""
