"""Run as a program, as users of lightkube do: create, read, patch, apply, list, await and delete typed objects."""

import os

from lightkube import Client, KubeConfig
from lightkube.models.core_v1 import Container, PodSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import ConfigMap, Namespace, Pod

client = Client(config=KubeConfig.from_file(os.environ["KUBECONFIG"]), namespace="default", field_manager="lightkube")
client.create(ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"a": "b"}))
assert client.get(ConfigMap, "light").data == {"a": "b"}
client.patch(ConfigMap, "light", {"data": {"a": "c"}})
applied = ConfigMap(metadata=ObjectMeta(name="light", namespace="default"), data={"x": "y"})
assert client.apply(applied, force=True).data == {"a": "c", "x": "y"}
assert "light" in [each.metadata.name for each in client.list(ConfigMap) if each.metadata]
client.delete(ConfigMap, "light")
assert "light" not in [each.metadata.name for each in client.list(ConfigMap) if each.metadata]

client.create(Namespace(metadata=ObjectMeta(name="light")))
spec = PodSpec(containers=[Container(name="c", image="i")], schedulerName="nobody")
client.create(Pod(metadata=ObjectMeta(name="light", namespace="light"), spec=spec))
ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
client.patch(Pod.Status, "light", ready, namespace="light")
assert client.wait(Pod, "light", for_conditions=["Ready"], namespace="light").metadata
client.deletecollection(Pod, namespace="light")
assert not list(client.list(Pod, namespace="light"))
