"""Run as a program, as users of kr8s do: create, list, patch, discover and delete a claim."""

import os
from typing import Any

import kr8s

CLAIM = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "kr8s", "namespace": "default", "labels": {"a": "b"}},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}

api: Any = kr8s.api(kubeconfig=os.environ["KUBECONFIG"])
ResourceClaim = kr8s.objects.new_class("ResourceClaim", version="resource.k8s.io/v1", namespaced=True)
made = ResourceClaim(CLAIM, api=api)
made.create()
assert [each.name for each in api.get(ResourceClaim, namespace="default", label_selector={"a": "b"})] == ["kr8s"]
made.patch({"metadata": {"labels": {"a": "c"}}})
made.refresh()
assert made.metadata.labels["a"] == "c"
assert {"resourceclaims", "jobs", "pods"} <= {each["name"] for each in api.api_resources()}
assert not list(api.get("jobs", namespace="kube-system"))
made.delete()
assert not list(api.get(ResourceClaim, namespace="default", label_selector={"a": "c"}))
