"""The kinds that drakit knows, by every name that they go by.

In:  a kind, plural, singular or short name, with or without group and version, in any case.
Out: the Kind: where it is served, what it is called, which struct it decodes to.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from functools import lru_cache

from drakit.api.kind import ALL_VERBS, STATUS_VERBS, Kind, Subresource
from drakit.api.neighbours import NEIGHBOURS
from drakit.api.objects import apps, cluster, pods, rbac
from drakit.api.objects.claims import ResourceClaim, ResourceClaimTemplate
from drakit.api.objects.classes import DeviceClass
from drakit.api.objects.partial import AnyObject
from drakit.api.objects.poolstatus import ResourcePoolStatusRequest
from drakit.api.objects.slices import ResourceSlice
from drakit.api.objects.taintrules import DeviceTaintRule
from drakit.api.objects.workloads import PodGroup, Workload
from drakit.api.release import MINOR
from drakit.base.errors import Unsupported
from drakit.base.structs import Model

__all__ = [
    "ALL_VERBS",
    "KINDS",
    "STATUS_VERBS",
    "Kind",
    "Subresource",
    "deprecation",
    "find_kind",
    "find_plural",
    "group_versions",
    "kind_of",
    "lookup",
    "served_in",
]

_RESOURCE = "resource.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_RBAC = "rbac.authorization.k8s.io"
_ADMISSION = "admissionregistration.k8s.io"
_STATUS = Subresource("status")
_DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
_REVIEW = ("create",)
_STREAM = ("create", "get")
_PROXY = ("create", "delete", "get", "patch", "update")

_OWN: tuple[Kind, ...] = (
    Kind(
        group=_RESOURCE, kind="DeviceClass", plural="deviceclasses", versions=_DRA_VERSIONS, namespaced=False,
        model=DeviceClass, fully_typed=True,
    ),
    Kind(
        group=_RESOURCE, kind="ResourceClaim", plural="resourceclaims", versions=_DRA_VERSIONS,
        subresources=(_STATUS,), model=ResourceClaim, fully_typed=True,
    ),
    Kind(
        group=_RESOURCE, kind="ResourceClaimTemplate", plural="resourceclaimtemplates", versions=_DRA_VERSIONS,
        model=ResourceClaimTemplate, fully_typed=True,
    ),
    Kind(
        group=_RESOURCE, kind="ResourceSlice", plural="resourceslices", versions=_DRA_VERSIONS, namespaced=False,
        model=ResourceSlice, fully_typed=True,
    ),
    Kind(
        group=_RESOURCE, kind="DeviceTaintRule", plural="devicetaintrules", versions=("v1beta2", "v1alpha3"),
        internal="v1beta2", namespaced=False, subresources=(_STATUS,), model=DeviceTaintRule, fully_typed=True,
    ),
    Kind(
        group=_RESOURCE, kind="ResourcePoolStatusRequest", plural="resourcepoolstatusrequests",
        versions=("v1beta2", "v1alpha3"), internal="v1alpha3", namespaced=False, subresources=(_STATUS,),
        model=ResourcePoolStatusRequest, fully_typed=True,
    ),
    Kind(
        group=_SCHEDULING, kind="PodGroup", plural="podgroups", versions=("v1alpha2",), internal="v1alpha2",
        subresources=(_STATUS,), model=PodGroup, fully_typed=True,
    ),
    Kind(
        group=_SCHEDULING, kind="Workload", plural="workloads", versions=("v1alpha2",), internal="v1alpha2",
        model=Workload, fully_typed=True,
    ),
    Kind(group=_SCHEDULING, kind="PriorityClass", plural="priorityclasses", namespaced=False, short_names=("pc",)),
    Kind(
        group="", kind="Pod", plural="pods", short_names=("po",), categories=("all",), model=pods.Pod,
        subresources=(
            Subresource("attach", _STREAM, "PodAttachOptions", "v1"),
            Subresource("binding", ("create",), "Binding", "v1"),
            Subresource("ephemeralcontainers"),
            Subresource("eviction", ("create",), "Eviction", "policy/v1"),
            Subresource("exec", _STREAM, "PodExecOptions", "v1"),
            Subresource("log", ("get",)),
            Subresource("portforward", _STREAM, "PodPortForwardOptions", "v1"),
            Subresource("proxy", _PROXY, "PodProxyOptions", "v1"),
            Subresource("resize"),
            _STATUS,
        ),
    ),
    Kind(
        group="", kind="Node", plural="nodes", namespaced=False, short_names=("no",),
        subresources=(Subresource("proxy", _PROXY, "NodeProxyOptions", "v1"), _STATUS), model=cluster.Node,
    ),
    Kind(
        group="", kind="Namespace", plural="namespaces", namespaced=False, short_names=("ns",),
        verbs=tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
        subresources=(Subresource("finalize", ("update",)), _STATUS), model=cluster.Namespace,
    ),
    Kind(group="", kind="Event", plural="events", short_names=("ev",), model=cluster.Event),
    Kind(group="", kind="ConfigMap", plural="configmaps", short_names=("cm",), model=cluster.ConfigMap),
    Kind(group="", kind="Secret", plural="secrets", model=cluster.Secret),
    Kind(
        group="", kind="ServiceAccount", plural="serviceaccounts", short_names=("sa",), model=cluster.ServiceAccount,
        subresources=(Subresource("token", ("create",), "TokenRequest", "authentication.k8s.io/v1"),),
    ),
    Kind(
        group="", kind="ResourceQuota", plural="resourcequotas", short_names=("quota",), subresources=(_STATUS,),
        model=cluster.ResourceQuota,
    ),
    Kind(
        group="", kind="Service", plural="services", short_names=("svc",), categories=("all",),
        subresources=(Subresource("proxy", _PROXY, "ServiceProxyOptions", "v1"), _STATUS),
    ),
    Kind(group="", kind="Endpoints", plural="endpoints", short_names=("ep",)),
    Kind(group="coordination.k8s.io", kind="Lease", plural="leases", model=cluster.Lease),
    Kind(
        group="apps", kind="ReplicaSet", plural="replicasets", short_names=("rs",), categories=("all",),
        subresources=(Subresource("scale", STATUS_VERBS, "Scale", "autoscaling/v1"), _STATUS),
        model=cluster.ReplicaSet,
    ),
    Kind(
        group="apps", kind="Deployment", plural="deployments", short_names=("deploy",), categories=("all",),
        subresources=(Subresource("scale", STATUS_VERBS, "Scale", "autoscaling/v1"), _STATUS),
        model=apps.Deployment,
    ),
    Kind(
        group="apps", kind="DaemonSet", plural="daemonsets", short_names=("ds",), categories=("all",),
        subresources=(_STATUS,), model=apps.DaemonSet,
    ),
    Kind(
        group="apps", kind="ControllerRevision", plural="controllerrevisions", model=apps.ControllerRevision,
    ),
    Kind(group="events.k8s.io", kind="Event", plural="events", short_names=("ev",)),
    Kind(group=_RBAC, kind="Role", plural="roles", model=rbac.Role),
    Kind(group=_RBAC, kind="ClusterRole", plural="clusterroles", namespaced=False, model=rbac.ClusterRole),
    Kind(group=_RBAC, kind="RoleBinding", plural="rolebindings", model=rbac.RoleBinding),
    Kind(
        group=_RBAC, kind="ClusterRoleBinding", plural="clusterrolebindings", namespaced=False,
        model=rbac.ClusterRoleBinding,
    ),
    Kind(
        group=_ADMISSION, kind="ValidatingAdmissionPolicy", plural="validatingadmissionpolicies", namespaced=False,
        categories=("api-extensions",), subresources=(_STATUS,),
    ),
    Kind(
        group=_ADMISSION, kind="ValidatingAdmissionPolicyBinding", plural="validatingadmissionpolicybindings",
        namespaced=False, categories=("api-extensions",),
    ),
    Kind(
        group=_ADMISSION, kind="MutatingAdmissionPolicy", plural="mutatingadmissionpolicies", namespaced=False,
        categories=("api-extensions",),
    ),
    Kind(
        group=_ADMISSION, kind="MutatingAdmissionPolicyBinding", plural="mutatingadmissionpolicybindings",
        namespaced=False, categories=("api-extensions",),
    ),
    Kind(
        group=_ADMISSION, kind="ValidatingWebhookConfiguration", plural="validatingwebhookconfigurations",
        namespaced=False, categories=("api-extensions",),
    ),
    Kind(
        group=_ADMISSION, kind="MutatingWebhookConfiguration", plural="mutatingwebhookconfigurations",
        namespaced=False, categories=("api-extensions",),
    ),
    Kind(
        group="", kind="ComponentStatus", plural="componentstatuses", namespaced=False, short_names=("cs",),
        verbs=("get", "list"),
    ),
    Kind(
        group="authentication.k8s.io", kind="SelfSubjectReview", plural="selfsubjectreviews", namespaced=False,
        verbs=_REVIEW,
    ),
    Kind(
        group="authentication.k8s.io", kind="TokenReview", plural="tokenreviews", namespaced=False, verbs=_REVIEW
    ),
    Kind(
        group="authorization.k8s.io", kind="SelfSubjectAccessReview", plural="selfsubjectaccessreviews",
        namespaced=False, verbs=_REVIEW,
    ),
    Kind(
        group="authorization.k8s.io", kind="SelfSubjectRulesReview", plural="selfsubjectrulesreviews",
        namespaced=False, verbs=_REVIEW,
    ),
    Kind(
        group="authorization.k8s.io", kind="SubjectAccessReview", plural="subjectaccessreviews", namespaced=False,
        verbs=_REVIEW,
    ),
    Kind(
        group="authorization.k8s.io", kind="LocalSubjectAccessReview", plural="localsubjectaccessreviews",
        verbs=_REVIEW,
    ),
)  # fmt: skip

KINDS: tuple[Kind, ...] = (*_OWN, *NEIGHBOURS)

# By version, unless the kind says otherwise: the minor releases of Kubernetes 1 that deprecate and remove it.
_DEPRECATED = {"v1beta1": (35, 38), "v1beta2": (36, 39)}
_DEPRECATED_KINDS = {
    ("v1beta2", "DeviceTaintRule"): (39, 42),
    ("v1alpha3", "DeviceTaintRule"): (36, 39),
    ("v1beta2", "ResourcePoolStatusRequest"): (39, 42),
    ("v1alpha3", "ResourcePoolStatusRequest"): (39, 42),
}

# Kinds of the core group that have no release in which they go.
_SUPERSEDED = {
    "Endpoints": (33, "; use discovery.k8s.io/v1 EndpointSlice"),
    "ComponentStatus": (19, ""),
}

_BY_MODEL = {kind.model: kind for kind in KINDS if kind.model is not AnyObject}
_BY_KIND = {(kind.group_version(version), kind.kind): kind for kind in KINDS for version in kind.versions}
_BY_PLURAL = {(kind.group_version(version), kind.plural): kind for kind in KINDS for version in kind.versions}


def _names(kind: Kind) -> tuple[str, ...]:
    return tuple(dict.fromkeys((kind.plural, kind.singular, *kind.short_names)))


def _spellings(kind: Kind) -> Iterator[str]:
    for bare in _names(kind):
        yield bare
        if kind.group:
            yield f"{bare}.{kind.group}"
        for version in kind.versions:
            yield f"{bare}.{version}.{kind.group}"


# Reversed, so that of several kinds with one name the first stays.
_BY_NAME = {spelling: kind for kind in reversed(KINDS) for spelling in _spellings(kind)}


def kind_of(model: Model | type[Model]) -> Kind:
    """The kind that a struct, or its class, belongs to."""
    wanted = model if isinstance(model, type) else type(model)
    if wanted not in _BY_MODEL:
        raise Unsupported(f"{wanted.__name__} is no kind of its own")
    return _BY_MODEL[wanted]


def find_kind(group_version: str, kind: str) -> Kind | None:
    return _BY_KIND.get((group_version, kind))


def find_plural(group_version: str, plural: str) -> Kind | None:
    return _BY_PLURAL.get((group_version, plural))


def served_in(group_version: str) -> tuple[Kind, ...]:
    """The kinds of a group and version, in the order of their plural names."""
    return tuple(sorted((kind for kind in KINDS if kind.serves(group_version)), key=lambda kind: kind.plural))


def group_versions() -> tuple[str, ...]:
    """Every group and version that is served, each group's preferred one first."""
    return tuple(dict.fromkeys(kind.group_version(version) for kind in KINDS for version in kind.versions))


def lookup(name: str) -> Kind:
    """Find a kind as kubectl does: `pods`, `pod`, `po`, `Pod`, `resourceclaims.resource.k8s.io`, `…v1.resource.k8s.io`.

    Of several the first counts: `events` are those of the core group. The beginning of a group will do:
    `resourceclaims.resource`. Raise Unsupported, with names that come close.
    """
    wanted = name.lower()
    bare, _, group = wanted.partition(".")
    if found := _BY_NAME.get(wanted):
        return found
    for kind in KINDS:
        if group and bare in _names(kind) and kind.group.startswith(group):
            return kind
    known = _BY_NAME if group else [spelling for kind in KINDS for spelling in _names(kind)]
    close = dict.fromkeys(difflib.get_close_matches(wanted, known, n=3))
    hint = f"; did you mean {', '.join(close)}?" if close else ""
    raise Unsupported(f'the server doesn\'t have a resource type "{name}"{hint}')


@lru_cache(maxsize=1024)
def deprecation(group_version: str, kind: str) -> str | None:
    """The warning that goes with an answer in a deprecated version.

    A server is silent about deprecations of releases after its own.
    """
    if group_version == "v1" and kind in _SUPERSEDED:
        release, hint = _SUPERSEDED[kind]
        return f"v1 {kind} is deprecated in v1.{release}+{hint}"
    group, _, version = group_version.rpartition("/")
    releases = _DEPRECATED_KINDS.get((version, kind)) or _DEPRECATED.get(version)
    if group != _RESOURCE or releases is None or releases[0] > MINOR:
        return None
    return f"{group_version} {kind} is deprecated in v1.{releases[0]}+, unavailable in v1.{releases[1]}+"
