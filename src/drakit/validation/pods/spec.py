"""Pods: the fields that concern resources, claims and scheduling, and what may change of a pod's spec.

In:  a pod as its document with a view of it.
Out: errors for what drakit reads; `details` has those of what only others read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from drakit.api import Partial, Pod, PodResourceClaim, PodSpec, ResourceRequirements, Toleration
from drakit.api.codec.specs import SHARED_SIZE, SPECS
from drakit.api.objects.plain import from_json
from drakit.base.fields import FieldError, Path, duplicate, forbidden, invalid, not_supported, required
from drakit.base.nodeselectors import NodeSelectorTerm
from drakit.base.taints import EQUAL, EXISTS, NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE
from drakit.validation.context import Context
from drakit.validation.fields.gonames import as_go
from drakit.validation.fields.metadata import check_form_update, check_labels, check_metadata, check_metadata_update
from drakit.validation.fields.names import check_label, check_label_key, check_label_value, check_subdomain
from drakit.validation.fields.nodeselectors import check_node_selector, check_term
from drakit.validation.pods.containers import check_containers, check_used_claims
from drakit.validation.pods.details import check_pod_details
from drakit.validation.pods.podlevel import check_pod_level

RESTART_POLICIES = ("Always", "OnFailure", "Never")
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
_LARGEST = 2**31 - 1
_SPEC = Path("spec")
_TERMS = Path("spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms")
_NO_RESOURCES = ResourceRequirements()
_UPDATABLE = ",".join(
    (
        "`spec.containers[*].image`",
        "`spec.initContainers[*].image`",
        "`spec.activeDeadlineSeconds`",
        "`spec.tolerations` (only additions to existing tolerations)",
        "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
    )
)
_ONE_OF = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
_AT_MOST = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"


def check_pod(pod: Partial[Pod], _ctx: Context) -> Iterator[FieldError]:
    yield from check_metadata(pod.view.metadata, namespaced=True)
    # An object that is stored has a version: ephemeral containers come to a pod that is there, never with it.
    if pod.view.spec.ephemeral_containers and not pod.view.metadata.resource_version:
        yield forbidden(_SPEC / "ephemeralContainers", "cannot be set on create")
    yield from _check_spec(pod)


def check_pod_update(new: Partial[Pod], old: Partial[Pod], _ctx: Context) -> Iterator[FieldError]:
    yield from check_form_update(new.view.metadata, old.view.metadata)
    yield from check_metadata_update(new.view.metadata, old.view.metadata)
    yield from _check_spec(new)
    for name in ("containers", "initContainers"):
        if len(_containers(new, name)) != len(_containers(old, name)):
            yield forbidden(_SPEC / name, "pod updates may not add or remove containers")
            return
    yield from _check_deadline(new.view.spec, old.view.spec, _SPEC / "activeDeadlineSeconds")
    yield from _check_added_tolerations(new.view.spec.tolerations, old.view.spec.tolerations)
    yield from _check_removed_gates(new.view.spec, old.view.spec)
    if old.view.spec.scheduling_gates:
        yield from _check_narrowed(new, old)
    if changed := _changed_fields(new, old):
        detail = f"pod updates may not change fields other than {_UPDATABLE}\nchanged: {', '.join(changed)}\n"
        yield forbidden(_SPEC, detail)


def _check_spec(pod: Partial[Pod]) -> Iterator[FieldError]:
    """A static pod is known to its node alone: nobody could allocate its claims."""
    if MIRROR_ANNOTATION in pod.view.metadata.annotations and pod.view.spec.resource_claims:
        yield forbidden(Path(), "static pods do not support resource claims")
    text = SPECS.json_of(pod.view.spec)
    if len(text) > SHARED_SIZE or not _is_good(text):
        yield from check_pod_spec(pod.view.spec, _SPEC)
    yield from check_pod_details(pod.document.get("spec") or {}, _SPEC, pod=pod.view.metadata.name)


@lru_cache(maxsize=4096)
def _is_good(spec: bytes) -> bool:
    """Whether a spec has no errors. Pods of one template have equal specs, so the result is cached."""
    return next(check_pod_spec(from_json(PodSpec, spec), Path()), None) is None


def check_pod_spec(spec: PodSpec, path: Path) -> Iterator[FieldError]:
    yield from _check_claims(spec.resource_claims, path / "resourceClaims")
    claims = frozenset(claim.name for claim in spec.resource_claims if claim.name)
    taken: set[str] = set()
    if not spec.containers:
        yield required(path / "containers")
    yield from check_containers(spec.containers, path / "containers", claims, taken)
    yield from check_containers(spec.init_containers, path / "initContainers", claims, taken)
    if spec.resources is not None:
        if spec.resources.claims:
            where = path / "resources" / "claims"
            yield forbidden(where, "claims may not be set for Resources at pod-level")
            yield from check_used_claims(spec.resources.claims, where, claims)
        yield from check_pod_level(spec, spec.resources, path / "resources")
    for index, each in enumerate(spec.ephemeral_containers):
        if each.resources != _NO_RESOURCES:
            where = (path / "ephemeralContainers")[index] / "resources"
            yield forbidden(where, "cannot be set for an Ephemeral Container")
    if spec.restart_policy and spec.restart_policy not in RESTART_POLICIES:
        yield not_supported(path / "restartPolicy", spec.restart_policy, RESTART_POLICIES)
    yield from _check_placement(spec, path)


def _check_claims(claims: Sequence[PodResourceClaim], path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        where = path[index]
        if not claim.name:
            yield required(where / "name")
        elif claim.name in seen:
            yield duplicate(where / "name", claim.name)
        else:
            yield from check_label(claim.name, where / "name")
            seen.add(claim.name)
        yield from _check_claim_source(claim, where)


def _check_claim_source(claim: PodResourceClaim, path: Path) -> Iterator[FieldError]:
    by_name, by_template = claim.resource_claim_name, claim.resource_claim_template_name
    if by_name is not None and by_template is not None:
        yield invalid(path, as_go(claim), _AT_MOST)
    elif by_name is None and by_template is None:
        yield invalid(path, as_go(claim), _ONE_OF)
    if by_name is not None:
        yield from check_subdomain(by_name, path / "resourceClaimName")
    if by_template is not None:
        yield from check_subdomain(by_template, path / "resourceClaimTemplateName")


def _check_placement(spec: PodSpec, path: Path) -> Iterator[FieldError]:
    yield from check_labels(spec.node_selector, path / "nodeSelector")
    for name, value in (
        ("nodeName", spec.node_name),
        ("serviceAccountName", spec.service_account_name),
        ("priorityClassName", spec.priority_class_name),
    ):
        if value:
            yield from check_subdomain(value, path / name)
    if spec.active_deadline_seconds is not None and not 1 <= spec.active_deadline_seconds <= _LARGEST:
        detail = f"must be between 1 and {_LARGEST}, inclusive"
        yield invalid(path / "activeDeadlineSeconds", spec.active_deadline_seconds, detail)
    for index, toleration in enumerate(spec.tolerations):
        yield from check_toleration(toleration, (path / "tolerations")[index])
    yield from _check_affinity(spec, path / "affinity" / "nodeAffinity")
    yield from _check_gates(spec, path / "schedulingGates")
    if spec.scheduling_group is not None:
        yield from _check_group(spec.scheduling_group.pod_group_name, path / "schedulingGroup" / "podGroupName")


def _check_group(name: str | None, path: Path) -> Iterator[FieldError]:
    if name is None:
        yield invalid(path, None, "must specify one of: `podGroupName`")
    else:
        yield from check_subdomain(name, path)


def check_toleration(toleration: Toleration, path: Path) -> Iterator[FieldError]:
    if toleration.key:
        yield from check_label_key(toleration.key, path / "key")
    elif toleration.operator != EXISTS:
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        yield invalid(path / "operator", toleration.operator, detail)
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        yield invalid(path / "effect", toleration.effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if toleration.operator in ("", EQUAL):
        yield from check_label_value(toleration.value, path / "operator")
    elif toleration.operator == EXISTS:
        if toleration.value:
            yield invalid(path / "operator", toleration.operator, "value must be empty when `operator` is 'Exists'")
    else:
        yield not_supported(path / "operator", toleration.operator, (EQUAL, EXISTS))
    if toleration.effect and toleration.effect not in EFFECTS:
        yield not_supported(path / "effect", toleration.effect, EFFECTS)


def _check_affinity(spec: PodSpec, path: Path) -> Iterator[FieldError]:
    if spec.affinity is None or spec.affinity.node_affinity is None:
        return
    affinity = spec.affinity.node_affinity
    if affinity.required_during_scheduling_ignored_during_execution is not None:
        where = path / "requiredDuringSchedulingIgnoredDuringExecution"
        yield from check_node_selector(affinity.required_during_scheduling_ignored_during_execution, where)
    for index, term in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        where = (path / "preferredDuringSchedulingIgnoredDuringExecution")[index]
        if not 1 <= term.weight <= 100:
            yield invalid(where / "weight", term.weight, "must be in the range 1-100")
        yield from check_term(term.preference, where / "preference")


def _check_gates(spec: PodSpec, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, gate in enumerate(spec.scheduling_gates):
        yield from check_label_key(gate.name, path[index])
        if gate.name in seen:
            yield duplicate(path[index], gate.name)
        seen.add(gate.name)


def _check_deadline(new: PodSpec, old: PodSpec, path: Path) -> Iterator[FieldError]:
    """It may be set, and made shorter."""
    after, before = new.active_deadline_seconds, old.active_deadline_seconds
    if before is None:
        return
    if after is None:
        yield invalid(path, None, "must not update from a positive integer to nil value")
    elif after > before:
        yield invalid(path, after, "must be less than or equal to previous value")


def _check_added_tolerations(new: Sequence[Toleration], old: Sequence[Toleration]) -> Iterator[FieldError]:
    """How long a toleration lasts may change; that it is there may not."""
    kept = {(each.key, each.operator, each.value, each.effect) for each in new}
    if any((each.key, each.operator, each.value, each.effect) not in kept for each in old):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        yield forbidden(_SPEC / "tolerations", detail)


def _check_removed_gates(new: PodSpec, old: PodSpec) -> Iterator[FieldError]:
    known = set(old.scheduling_gates)
    for index, gate in enumerate(new.scheduling_gates):
        if gate not in known:
            detail = f"only deletion is allowed, but found new scheduling gate '{gate.name}'"
            yield forbidden((_SPEC / "schedulingGates")[index], detail)


def _containers(pod: Partial[Pod], name: str) -> Sequence[Mapping[str, Any]]:
    containers: Sequence[Mapping[str, Any]] = (pod.document.get("spec") or {}).get(name) or ()
    return containers


def _beside_nodes(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The affinity of a pod but for that to nodes."""
    return {name: each for name, each in (spec.get("affinity") or {}).items() if name != "nodeAffinity" and each}


def _check_narrowed(new: Partial[Pod], old: Partial[Pod]) -> Iterator[FieldError]:
    """A pod that is not to be scheduled yet may be kept to fewer nodes, not sent to others."""
    after, before = new.document.get("spec") or {}, old.document.get("spec") or {}
    selector, selector_before = after.get("nodeSelector") or {}, before.get("nodeSelector") or {}
    if any(selector.get(name) != value for name, value in selector_before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        yield invalid(_SPEC / "nodeSelector", after.get("nodeSelector"), detail)
    where, terms, terms_before = _TERMS, _terms(new.view.spec), _terms(old.view.spec)
    if terms_before and len(terms) != len(terms_before):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        yield invalid(where, as_go(terms) if terms else None, detail)
        return
    for index, (term, was) in enumerate(zip(terms, terms_before, strict=False)):
        begins = (
            term.match_expressions[: len(was.match_expressions)] == was.match_expressions
            and term.match_fields[: len(was.match_fields)] == was.match_fields
        )
        if not begins:
            yield invalid(where[index], as_go(term), "only additions are allowed (no mutations or deletions)")


def _terms(spec: PodSpec) -> tuple[NodeSelectorTerm, ...]:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    wanted = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return wanted.node_selector_terms if wanted is not None else ()


def _changed_fields(new: Partial[Pod], old: Partial[Pod]) -> list[str]:
    """The fields of the spec that changed though they may not."""
    after, before = dict(new.document.get("spec") or {}), dict(old.document.get("spec") or {})
    for name in ("containers", "initContainers"):
        after[name] = [{**each, "image": ""} for each in _containers(new, name)]
        before[name] = [{**each, "image": ""} for each in _containers(old, name)]
    free = {"activeDeadlineSeconds", "schedulingGates", "tolerations"}
    if old.view.spec.scheduling_gates:
        # A pod that is not to be scheduled yet may be told where to go.
        free.add("nodeSelector")
        after["affinity"], before["affinity"] = (_beside_nodes(spec) for spec in (after, before))
    grace = (before.get("terminationGracePeriodSeconds") or 0, after.get("terminationGracePeriodSeconds"))
    if grace[0] < 0 and grace[1] == 1:
        free.add("terminationGracePeriodSeconds")
    candidates = sorted((after.keys() | before.keys()) - free)
    return [name for name in candidates if (after.get(name) or None) != (before.get(name) or None)]
