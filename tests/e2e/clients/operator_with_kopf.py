"""An operator: it labels every claim that asks for it."""

from typing import Any

import kopf


@kopf.on.create("resource.k8s.io", "v1", "resourceclaims", labels={"seen-by": "kopf"})
def created(patch: Any, **_: Any) -> None:
    patch.metadata.labels["kopf"] = "done"
