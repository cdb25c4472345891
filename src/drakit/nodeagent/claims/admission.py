"""May this pod use its claims, here and now?

In:  a pod; its claims, read one by one from the server.
Out: the claims, in the order in which drivers are told of them; or why not, in the kubelet's words.

All claims are checked before anything is done for one of them. The order of the checks of a claim: its name, that it
is there, whose it is, for whom it is reserved, that it is allocated, that its drivers are registered.

ClaimRefused    (Retryable) the pod waits; somebody may change the claim
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from drakit.api import Pod, ResourceClaim
from drakit.api.podclaims import (
    ClaimNotCreated,
    ClaimUnsupported,
    claim_name,
    extended_resource_claim_name,
    is_made_for_pod,
    is_reserved_for_pod,
    pod_group_name,
)
from drakit.base.errors import DrakitError, Retryable
from drakit.base.gates import FeatureGates
from drakit.client import CLAIMS, Client
from drakit.nodeagent.claims.waits import SeenClaim


class ClaimRefused(Retryable):
    """The pod may not use one of its claims, now. `claim` is the one that would have to change, where there is one."""

    def __init__(self, message: str, *, claim: SeenClaim | None = None) -> None:
        super().__init__(message)
        self.claim = claim


@dataclass(frozen=True, slots=True)
class AdmittedClaim:
    claim: ResourceClaim
    drivers: tuple[str, ...]
    """Of the allocation, in the order of its results."""


class ClaimAdmission:
    def __init__(self, client: Client, gates: FeatureGates, check_driver: Callable[[str], None]) -> None:
        """`check_driver` raises when the driver is not registered."""
        self._client = client
        self._groups = "DRAWorkloadResourceClaims" in gates.on
        self._extended = "DRAExtendedResource" in gates.on
        self._check_driver = check_driver

    async def admit(self, pod: Pod) -> list[AdmittedClaim]:
        """One entry per claim, however often the pod names it. Raise ClaimRefused, DriverNotRegistered."""
        admitted: dict[str, AdmittedClaim] = {}
        for name, from_template in self._names(pod):
            claim = await self._get(pod, name)
            if from_template:
                self._check_owner(claim, pod)
            self._check_use(claim, pod)
            drivers = drivers_of(claim)
            for driver in drivers:
                self._check_driver(driver)
            admitted[claim.metadata.uid] = AdmittedClaim(claim, drivers)
        return list(admitted.values())

    def _names(self, pod: Pod) -> list[tuple[str, bool]]:
        """Claim names with whether a template made them; an entry that needs no claim is left out."""
        names = []
        for entry in pod.spec.resource_claims:
            try:
                name = claim_name(pod, entry)
            except (ClaimNotCreated, ClaimUnsupported) as error:
                raise ClaimRefused(str(error)) from None
            if name is not None:
                names.append((name, entry.resource_claim_name is None))
        if self._extended and (extended := extended_resource_claim_name(pod)):
            names.append((extended, False))
        return names

    async def _get(self, pod: Pod, name: str) -> ResourceClaim:
        try:
            return await self._client.get(CLAIMS, name, namespace=pod.metadata.namespace)
        except DrakitError as error:
            absent = SeenClaim(pod.metadata.namespace, name)
            raise ClaimRefused(f"fetch ResourceClaim {name}: {error}", claim=absent) from None

    def _check_owner(self, claim: ResourceClaim, pod: Pod) -> None:
        if is_made_for_pod(claim, pod, groups=self._groups):
            return
        group = pod_group_name(pod) if self._groups else None
        cause = f"neither Pod nor PodGroup {group} is the owner" if group else "Pod is not owner"
        namespace = pod.metadata.namespace
        raise ClaimRefused(
            f"ResourceClaim {namespace}/{claim.metadata.name} was not created for Pod "
            f"{namespace}/{pod.metadata.name} ({cause})",
            claim=seen(claim),
        )

    def _check_use(self, claim: ResourceClaim, pod: Pod) -> None:
        if is_reserved_for_pod(claim, pod, groups=self._groups) and claim.status.allocation is not None:
            return
        raise ClaimRefused(
            f"pod {pod.metadata.name} ({pod.metadata.uid}) is not allowed to use "
            f"ResourceClaim {claim.metadata.name} ({claim.metadata.uid})",
            claim=seen(claim),
        )


def seen(claim: ResourceClaim) -> SeenClaim:
    metadata = claim.metadata
    return SeenClaim(metadata.namespace, metadata.name, metadata.resource_version)


def drivers_of(claim: ResourceClaim) -> tuple[str, ...]:
    allocation = claim.status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return tuple(dict.fromkeys(result.driver for result in results))
