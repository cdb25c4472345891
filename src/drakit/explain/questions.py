"""What-if questions and their answers, as plain data: they come from and become JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from drakit.explain.utilisation import Utilisation

Document = Mapping[str, Any]


class WhatIf(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Changes to a cluster, in the order in which they are made.

    add_nodes     so many nodes of a kind: like a node of the cluster, or a name of `templates`
    templates     kinds of nodes by name: a Node and its ResourceSlices
    remove_nodes  nodes that go, with their slices; their pods are tried elsewhere
    drain         nodes that take no pods any more; theirs are tried elsewhere
    taint         devices, as driver/pool/device, pool/device or device, then `=key:effect` if need be; pods that do not
                  tolerate NoExecute (the effect, unless it is said) are tried elsewhere
    evict         pods that go for good, as namespace/name
    put           further objects, in the place of those of their name: pods, claims, templates, classes, …
    smallest      a kind of node: how many of it are needed for everything that is pending?
    """

    add_nodes: Mapping[str, int] = {}
    templates: Mapping[str, tuple[Document, ...]] = {}
    remove_nodes: tuple[str, ...] = ()
    drain: tuple[str, ...] = ()
    taint: tuple[str, ...] = ()
    evict: tuple[str, ...] = ()
    put: tuple[Document, ...] = ()
    smallest: str = ""


class PodPlacement(msgspec.Struct, frozen=True, omit_defaults=True):
    """A pod that was tried. `order` counts from one. `moved` is the node that it was on before, if any."""

    order: int
    namespace: str
    name: str
    node: str = ""
    devices: tuple[str, ...] = ()
    moved: str = ""
    reason: str = ""


class WhatIfAnswer(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """`added` are the names of new nodes. `needed` is the answer to `smallest`; None where it was not asked.

    Pods of `hopeless` fit on no number of nodes of that kind.
    """

    placed: tuple[PodPlacement, ...]
    pending: tuple[PodPlacement, ...]
    before: Utilisation
    after: Utilisation
    added: tuple[str, ...] = ()
    needed: int | None = None
    hopeless: tuple[str, ...] = ()
