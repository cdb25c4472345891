"""Run as a program, as users of lightkube do: create, read, patch, apply, list and delete typed objects."""

import os

from lightkube import Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap

client = Client(config=KubeConfig.from_file(os.environ["KUBECONFIG"]), namespace="default", field_manager="lightkube")
client.create(ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "b"}))
assert client.get(ConfigMap, "light").data == {"a": "b"}
client.patch(ConfigMap, "light", {"data": {"a": "c"}})
applied = ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"x": "y"})
assert client.apply(applied, force=True).data == {"a": "c", "x": "y"}
assert "light" in [each.metadata.name for each in client.list(ConfigMap) if each.metadata]
client.delete(ConfigMap, "light")
assert "light" not in [each.metadata.name for each in client.list(ConfigMap) if each.metadata]
