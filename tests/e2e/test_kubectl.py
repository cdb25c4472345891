"""Every kubectl command that the server must serve, with what it prints where that is stable."""

from __future__ import annotations

import json
from pathlib import Path

from tests.builders.documents import class_document, node_document, slice_document
from tests.e2e.kubectl import OLD, Kubectl, modern
from tests.e2e.processes import Running

CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c1, labels: {a: b}}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}}
"""
TEMPLATE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: t1}
spec: {spec: {devices: {requests: [{name: r, exactly: {deviceClassName: gpu.example.com}}]}}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p1}
spec: {containers: [{name: main, image: registry.example.com/app:1}]}
"""


def class_json(name: str, expression: str = "true") -> str:
    return json.dumps(class_document(name, expression))


def slice_json(name: str, node: str, *, count: int = 1) -> str:
    return json.dumps(slice_document(name, "dev-0", node=node, pool=node, count=count))


def test_discovery_is_the_same_from_the_server_and_from_the_cache(kubectl: Kubectl) -> None:
    cold, warm = kubectl("api-resources"), kubectl("api-resources")
    assert cold == warm
    assert any(line.split()[:2] == ["resourceclaims", "resource.k8s.io/v1"] for line in cold.splitlines())
    assert "resource.k8s.io/v1beta1" in kubectl("api-versions").splitlines()


def test_create_and_create_again(kubectl: Kubectl, team: str) -> None:
    assert kubectl("create", "-n", team, "-f", "-", stdin=CLAIM) == "resourceclaim.resource.k8s.io/c1 created\n"
    assert "AlreadyExists" in kubectl.refused("create", "-n", team, "-f", "-", stdin=CLAIM)
    assert kubectl("create", "-n", team, "-f", "-", stdin=POD) == "pod/p1 created\n"
    assert kubectl("create", "quota", "q", "--hard=pods=3", "-n", team) == "resourcequota/q created\n"
    assert kubectl.object("resourcequota/q", "-n", team)["spec"] == {"hard": {"pods": "3"}}


def test_a_field_that_nobody_knows_is_refused_by_name(kubectl: Kubectl, team: str) -> None:
    wrong = CLAIM.replace("spec: {devices:", "spec: {extra: 1, devices:")
    refused = kubectl.refused("create", "-n", team, "-f", "-", stdin=wrong)
    assert ('unknown field "extra"' if OLD else 'unknown field "spec.extra"') in refused


def test_apply_new_unchanged_changed_and_after_create(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=CLAIM)
    assert "configured" in kubectl("apply", "-n", team, "-f", "-", stdin=CLAIM)
    name = "applied-class"
    assert kubectl("apply", "-f", "-", stdin=class_json(name)).endswith("created\n")
    assert kubectl("apply", "-f", "-", stdin=class_json(name)).endswith("unchanged\n")
    changed = class_json(name, "false")
    assert kubectl("apply", "-f", "-", "--dry-run=server", stdin=changed).endswith("configured (server dry run)\n")
    assert kubectl("apply", "-f", "-", "--dry-run=client", stdin=changed).endswith("(dry run)\n")
    diff = kubectl.run("diff", "-f", "-", stdin=changed)
    assert diff.returncode == 1
    assert "+  - cel:" in diff.stdout or 'expression: "false"' in diff.stdout
    assert kubectl("apply", "-f", "-", stdin=changed).endswith("configured\n")
    assert kubectl.object("deviceclass", name)["metadata"]["generation"] == 2


def test_apply_on_the_server_and_by_another_manager(kubectl: Kubectl) -> None:
    first = slice_json("applied", "node-x")
    assert kubectl("apply", "--server-side", "-f", "-", stdin=first).endswith("serverside-applied\n")
    other = slice_json("applied", "node-x", count=2)
    refused = kubectl.refused("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)
    assert 'conflict with "kubectl": .spec.pool.resourceSliceCount' in refused
    kubectl("apply", "--server-side", "--field-manager=other", "--force-conflicts", "-f", "-", stdin=other)
    assert kubectl.object("resourceslice", "applied")["spec"]["pool"]["resourceSliceCount"] == 2


def test_a_list_in_a_file_is_checked_and_its_items_applied(kubectl: Kubectl, team: str) -> None:
    items: list[dict[str, object]] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in ("a", "b")
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": items}
    applied = kubectl("apply", "-n", team, "-f", "-", stdin=json.dumps(listed))
    assert applied == "configmap/a created\nconfigmap/b created\n"
    items[1]["dita"] = {}
    refused = kubectl.refused("apply", "-n", team, "-f", "-", stdin=json.dumps(listed))
    assert 'unknown field "dita"' in refused


def test_get_in_all_its_forms(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=f"{CLAIM}---\n{TEMPLATE}---\n{POD}")
    kubectl("create", "-f", "-", stdin=slice_json("s1", "n1") + slice_json("s2", "n2"))
    assert kubectl("get", "resourceclaims", "-n", team).splitlines()[0].split() == ["NAME", "STATE", "AGE"]
    assert kubectl("get", "resourceclaim", "c1", "-n", team).splitlines()[1].split()[:2] == ["c1", "pending"]
    wide = kubectl("get", "resourceslices", "-o", "wide").splitlines()
    assert wide[0].split() == ["NAME", "NODE", "DRIVER", "POOL", "AGE"]
    assert "name: c1" in kubectl("get", "resourceclaim", "c1", "-n", team, "-o", "yaml")
    assert "resourceslice.resource.k8s.io/s1" in kubectl("get", "resourceslices", "-o", "name").splitlines()
    assert kubectl("get", "resourceclaim", "c1", "-n", team, "-o", "jsonpath={.metadata.labels.a}") == "b"
    assert any(line.split()[:2] == [team, "c1"] for line in kubectl("get", "resourceclaims", "-A").splitlines())
    assert "c1" in kubectl("get", "resourceclaims", "-n", team, "-l", "a=b")
    assert kubectl("get", "resourceclaims", "-n", team, "-l", "a=zzz") == ""
    chosen = kubectl("get", "resourceslices", "--field-selector", "spec.nodeName=n1", "-o", "name")
    assert chosen == "resourceslice.resource.k8s.io/s1\n"
    several = kubectl("get", "resourceclaims,resourceclaimtemplates,pods", "-n", team, "-o", "name").split()
    assert several == ["resourceclaim.resource.k8s.io/c1", "resourceclaimtemplate.resource.k8s.io/t1", "pod/p1"]
    assert kubectl("get", "pods", "-n", team).splitlines()[1].split()[:4] == ["p1", "0/1", "Pending", "0"]
    assert "pod/p1" in kubectl("get", "all", "-n", team)
    paged = kubectl("get", "resourceslices", "--chunk-size=1", "-o", "name").splitlines()
    assert {"resourceslice.resource.k8s.io/s1", "resourceslice.resource.k8s.io/s2"} <= set(paged)
    missing = kubectl.refused("get", "resourceclaim", "nope", "-n", team)
    assert missing == 'Error from server (NotFound): resourceclaims.resource.k8s.io "nope" not found\n'


def test_warnings_of_old_versions_are_printed(kubectl: Kubectl) -> None:
    done = kubectl.run("get", "devicetaintrules.v1alpha3.resource.k8s.io")
    assert "DeviceTaintRule is deprecated in v1.36+" in done.stderr
    newer = kubectl.run("get", "devicetaintrules.v1beta2.resource.k8s.io")
    assert "deprecated" not in newer.stderr  # from v1.39 on


@modern
def test_describe_shows_objects_and_their_events(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=f"{CLAIM}---\n{POD}")
    kubectl("create", "-f", "-", stdin=slice_json("d1", "n1") + class_json("d1"))
    uid = kubectl.object("pod/p1", "-n", team)["metadata"]["uid"]
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "reason": "Seen", "message": "it was seen",
        "type": "Normal", "source": {"component": "tester"}, "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "p1", "namespace": team, "uid": uid},
    }  # fmt: skip
    kubectl("create", "-n", team, "-f", "-", stdin=json.dumps(event))
    assert "it was seen" in kubectl("describe", "pod", "p1", "-n", team)
    assert "it was seen" in kubectl("events", "-n", team)
    for kind, name in (("resourceclaim", "c1"), ("resourceslice", "d1"), ("deviceclass", "d1")):
        assert f"Name:         {name}" in kubectl("describe", kind, name, "-n", team)


def test_explain_in_our_own_words(kubectl: Kubectl) -> None:
    text = kubectl("explain", "resourceclaim.spec.devices.requests")
    assert "resource.k8s.io" in text
    assert "firstAvailable\t<[]" in text
    assert "The container image." in kubectl("explain", "pod.spec.containers")
    assert "How many pods may be missing" in kubectl("explain", "deployment.spec.strategy.rollingUpdate")
    assert "<no description>" not in kubectl("explain", "pods.spec")
    assert "tolerationSeconds" in kubectl("explain", "resourceclaim", "--recursive")
    assert "nodeName" in kubectl("explain", "pod.spec")


@modern
def test_explain_events_of_their_own_group(kubectl: Kubectl) -> None:
    text = kubectl("explain", "events", "--api-version=events.k8s.io/v1")
    assert "events.k8s.io" in text
    assert "regarding" in text
    # kubectl takes the core group's events first, and the rest of the name for a field: as with kube-apiserver.
    assert 'field "io" does not exist' in kubectl.refused("explain", "events.events.k8s.io")


@modern
def test_explain_by_the_second_openapi(kubectl: Kubectl) -> None:
    assert "The container image." in kubectl("explain", "pod.spec.containers", "--output=plaintext-openapiv2")


@modern
def test_label_annotate_and_patch(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=CLAIM)
    claim = ("resourceclaim", "c1", "-n", team)
    kubectl("label", *claim, "x=y")
    assert "--overwrite" in kubectl.refused("label", *claim, "x=z")
    kubectl("label", "--overwrite", *claim, "x=z")
    kubectl("annotate", *claim, "note=hello")
    kubectl("patch", *claim, "--type=merge", "-p", '{"metadata":{"labels":{"m":"1"}}}')
    kubectl("patch", *claim, "-p", '{"metadata":{"finalizers":["example.com/keep"]}}')
    kubectl("patch", *claim, "--type=json", "-p", '[{"op":"remove","path":"/metadata/finalizers"}]')
    device = {"request": "r", "driver": "gpu.example.com", "pool": "p", "device": "d"}
    status = {"status": {"allocation": {"devices": {"results": [device]}}}}
    kubectl("patch", *claim, "--subresource=status", "--type=merge", "-p", json.dumps(status))
    found = kubectl.object(*claim)
    assert found["metadata"]["labels"] == {"a": "b", "m": "1", "x": "z"}
    assert found["metadata"]["annotations"] == {"note": "hello"}
    assert "finalizers" not in found["metadata"]
    assert found["status"]["allocation"]["devices"]["results"][0]["device"] == "d"


def test_edit_and_replace(kubectl: Kubectl, team: str, tmp_path: Path) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=f"{CLAIM}---\n{POD}")
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/a: b/a: edited/' \"$1\"\n")
    editor.chmod(0o755)
    assert "edited" in kubectl("edit", "resourceclaim", "c1", "-n", team, KUBE_EDITOR=str(editor))
    assert kubectl.object("resourceclaim/c1", "-n", team)["metadata"]["labels"] == {"a": "edited"}
    assert "replaced" in kubectl("replace", "-n", team, "-f", "-", stdin=CLAIM)
    before = kubectl.object("pod/p1", "-n", team)["metadata"]["uid"]
    kubectl("replace", "--force", "-n", team, "-f", "-", stdin=POD)
    assert kubectl.object("pod/p1", "-n", team)["metadata"]["uid"] != before


@modern
def test_who_am_i_and_what_may_i(kubectl: Kubectl) -> None:
    assert kubectl("auth", "can-i", "create", "resourceclaims.resource.k8s.io") == "yes\n"
    assert "*.*" in kubectl("auth", "can-i", "--list")
    assert "kubernetes-admin" in kubectl("auth", "whoami")


@modern
def test_wait_for_a_condition_a_value_and_a_deletion(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=f"{CLAIM}---\n{POD}")
    assert "timed out" in kubectl.refused("wait", "--for=condition=Ready", "pod/p1", "-n", team, "--timeout=1s")
    ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    kubectl("patch", "pod", "p1", "-n", team, "--subresource=status", "--type=merge", "-p", json.dumps(ready))
    kubectl("wait", "--for=condition=Ready", "pod/p1", "-n", team, "--timeout=90s")
    kubectl("wait", "--for=jsonpath={.metadata.labels.a}=b", "resourceclaim/c1", "-n", team, "--timeout=90s")
    kubectl("delete", "pod", "p1", "-n", team)
    kubectl("wait", "--for=delete", "pod/p1", "-n", team, "--timeout=90s")


def test_get_and_watch(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=CLAIM)
    for arguments in (("resourceclaims",), ("resourceclaim", "c1")):
        lines = kubectl.until("c1", "get", *arguments, "-w", "-n", team)
        assert lines[0].split() == ["NAME", "STATE", "AGE"]


def test_logs_without_a_node_say_why(kubectl: Kubectl, team: str) -> None:
    assert 'pods "p1" not found' in kubectl.refused("logs", "p1", "-n", team)


def test_delete_in_all_its_forms(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-n", team, "-f", "-", stdin=CLAIM)
    kubectl("create", "-f", "-", stdin=slice_json("gone", "n1") + class_json("gone"))
    assert kubectl("delete", "resourceclaim", "c1", "-n", team).startswith('resourceclaim.resource.k8s.io "c1" deleted')
    kubectl("delete", "resourceslice", "gone", "--wait=false")
    kubectl("delete", "-f", "-", stdin=class_json("gone"))
    assert "not found" in kubectl.refused("delete", "resourceclaim", "c1", "-n", team)
    assert "No resources found" in kubectl.run("delete", "resourceclaims", "-l", "a=zzz", "-n", team).stdout
    kubectl("create", "-n", team, "-f", "-", stdin=CLAIM)
    assert '"c1" deleted' in kubectl("delete", "resourceclaims", "--all", "-n", team)


@modern
def test_version_and_cluster_info(kubectl: Kubectl) -> None:
    assert "Server Version: v1.36.4+drakit" in kubectl.run("version").stdout
    assert "Kubernetes control plane" in kubectl("cluster-info")


def test_scale_a_replica_set(kubectl: Kubectl, team: str) -> None:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    replicas = json.dumps({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web"}, "spec": spec})
    kubectl("create", "-n", team, "-f", "-", stdin=replicas)
    kubectl("scale", "rs/web", "--replicas=3", "-n", team)
    assert kubectl.object("rs/web", "-n", team)["spec"]["replicas"] == 3


@modern
def test_a_service_account_gets_a_token_that_works(kubectl: Kubectl, server: Running, team: str) -> None:
    kubectl("create", "serviceaccount", "robot", "-n", team)
    token = kubectl("create", "token", "robot", "-n", team).strip()
    access = ("--server", server.url, "--insecure-skip-tls-verify", "--token", token)
    assert f"system:serviceaccount:{team}:robot" in kubectl("auth", "whoami", *access, KUBECONFIG="")
    assert "Unauthorized" in kubectl.run("auth", "whoami", *access[:-1], "wrong", KUBECONFIG="").stderr


@modern
def test_generators_of_workloads_and_what_surrounds_them(kubectl: Kubectl, team: str) -> None:
    assert kubectl("create", "deployment", "web", "--image=app", "-n", team).endswith("created\n")
    assert kubectl("autoscale", "deployment", "web", "--max=3", "-n", team).endswith("autoscaled\n")
    assert kubectl("create", "job", "once", "--image=app", "-n", team).endswith("created\n")
    assert kubectl("create", "cronjob", "often", "--image=app", "--schedule=*/5 * * * *", "-n", team).endswith(
        "created\n"
    )
    assert kubectl("create", "pdb", "one", "--selector=app=web", "--min-available=1", "-n", team).endswith("created\n")
    assert kubectl("create", "ingress", "way", "--rule=a.example.com/*=web:80", "-n", team).endswith("created\n")
    assert kubectl("expose", "deployment", "web", "--port=80", "-n", team).endswith("exposed\n")


@modern
def test_what_the_server_says_of_itself(kubectl: Kubectl) -> None:
    assert kubectl("get", "endpoints", "kubernetes", "-o", "name") == "endpoints/kubernetes\n"
    assert "endpointslice.discovery.k8s.io/kubernetes" in kubectl("get", "endpointslices", "-o", "name")
    assert "etcd-0" in kubectl("get", "componentstatuses")
    assert json.loads(kubectl("get", "--raw", "/openid/v1/jwks"))["keys"]
    assert json.loads(kubectl("get", "--raw", "/.well-known/openid-configuration"))["issuer"]
    assert "[+]informer-sync ok" in kubectl("get", "--raw", "/readyz?verbose")
    assert '"kind": "NodeList"' in kubectl("cluster-info", "dump")
    assert kubectl("get", "csr,apiservices,limits", "-A") == ""
    assert "doesn't have a resource type" in kubectl.refused("get", "customresourcedefinitions")


@modern
def test_a_node_is_debugged_by_a_pod_on_it(kubectl: Kubectl, team: str) -> None:
    kubectl("create", "-f", "-", stdin=json.dumps(node_document("broken")))
    assert "Creating debugging pod node-debugger-broken-" in kubectl.run(
        "debug", "node/broken", "--image=tools", "--attach=false", "-n", team
    ).stdout  # fmt: skip
    (made,) = kubectl.object("pods", "-n", team)["items"]
    assert (made["spec"]["nodeName"], made["spec"]["hostPID"]) == ("broken", True)


@modern
def test_what_needs_a_metrics_server_says_so(kubectl: Kubectl) -> None:
    for what in ("pods", "nodes"):
        assert kubectl.refused("top", what) == "error: Metrics API not available\n"


@modern
def test_rights_on_jobs_are_told_without_a_doubt_that_there_are_jobs(kubectl: Kubectl) -> None:
    done = kubectl.run("auth", "can-i", "get", "jobs")
    assert (done.stdout, done.stderr) == ("yes\n", "")
