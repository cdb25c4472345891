"""The kinds around pods are served whole: made, read, changed, shown, watched and deleted, each like any other."""

from __future__ import annotations

import pytest

from drakit.api import lookup
from drakit.api.neighbours import NEIGHBOURS as KINDS
from drakit.apiserver import Settings
from tests.apiserver.calls import PODS, TABLE, Api, on_loop, serving, take, told
from tests.apiserver.neighbours import NEIGHBOURS, Plain, collection, neighbour
from tests.builders.documents import pod_document

every_kind = pytest.mark.parametrize("plural", sorted(NEIGHBOURS))


def place(plural: str) -> str:
    return collection(plural, namespaced=lookup(plural).namespaced)


async def made(api: Api, plural: str, **changes: object) -> Plain:
    answer = await api.create(place(plural), neighbour(plural, **changes), fieldValidation="Strict")
    assert answer.code == 201, answer.body
    found: Plain = answer.body
    return found


def test_every_kind_around_pods_is_tried_here() -> None:
    assert {kind.plural for kind in KINDS} <= NEIGHBOURS.keys()


@every_kind
@on_loop
async def test_an_object_is_made_read_changed_and_deleted(plural: str) -> None:
    async with serving() as api:
        stored = await made(api, plural)
        where = f"{place(plural)}/{stored['metadata']['name']}"
        assert (await api.get(where)).body == stored
        labelled = await api.patch(where, {"metadata": {"labels": {"a": "b"}}})
        assert labelled.body["metadata"]["labels"]["a"] == "b"
        assert (await api.update(where, labelled.body)).body == labelled.body
        assert (await api.get(place(plural), labelSelector="a=b")).names == [stored["metadata"]["name"]]
        assert (await api.delete(where, {"propagationPolicy": "Background"})).code == 200
        assert (await api.get(where)).code == 404


@every_kind
@on_loop
async def test_a_table_has_a_cell_for_each_column(plural: str) -> None:
    async with serving() as api:
        await made(api, plural)
        table = (await api.get(place(plural), accept=TABLE)).body
        columns, cells = table["columnDefinitions"], table["rows"][0]["cells"]
        assert len(cells) == len(columns)
        types = {"string": str, "integer": int, "boolean": bool, "date": str}
        wrong = [
            (column["name"], cell)
            for column, cell in zip(columns, cells, strict=True)
            # Upstream declares some numbers and flags as strings, and one flag the other way round.
            if not isinstance(cell, types[column["type"]])
            and (column["type"] == "integer" or not isinstance(cell, str | int | bool))
        ]
        assert wrong == []


@every_kind
@on_loop
async def test_a_watch_tells_of_an_object(plural: str) -> None:
    async with serving() as api:
        stream = await api.watch(place(plural))
        stored = await made(api, plural)
        assert told(await take(stream.events(), 1)) == [("ADDED", stored["metadata"]["name"])]
        await stream.close()


@pytest.mark.parametrize("plural", [kind.plural for kind in KINDS if kind.subresource("status")])
@on_loop
async def test_a_status_is_written_by_its_subresource_alone(plural: str) -> None:
    async with serving() as api:
        stored = await made(api, plural)
        where = f"{place(plural)}/{stored['metadata']['name']}"
        answer = await api.patch(where + "/status", {"metadata": {"annotations": {"seen": "yes"}}})
        assert answer.code == 200
        changed = await api.patch(where, {"status": None})
        assert changed.body.get("status") == stored.get("status")
        spec = await api.patch(where + "/status", {"spec": None})
        assert spec.body.get("spec") == stored.get("spec")


@on_loop
async def test_labels_that_come_from_a_template_come_to_equal_objects_too() -> None:
    async with serving() as api:
        for name in ("one", "two"):
            stored = await made(api, "jobs", metadata={"name": name})
            labels = stored["metadata"]["labels"]
            assert labels == stored["spec"]["template"]["metadata"]["labels"]
            assert (labels["app"], labels["job-name"]) == ("x", name)


@on_loop
async def test_a_budget_that_nobody_has_looked_at_refuses_evictions_for_now() -> None:
    async with serving() as api:
        await made(api, "poddisruptionbudgets", spec={"minAvailable": 0, "selector": {"matchLabels": {"app": "x"}}})
        labelled = pod_document("p")
        labelled["metadata"]["labels"] = {"app": "x"}
        await api.create(PODS, labelled)
        await api.patch(f"{PODS}/p/status", {"status": {"phase": "Running"}})
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        refused = await api.create(f"{PODS}/p/eviction", eviction)
        assert (refused.code, refused.body["details"]["retryAfterSeconds"]) == (429, 10)
        [cause] = refused.body["details"]["causes"]
        assert cause["message"] == "The disruption budget x is still being processed by the server."
        assert "conditions" not in (await api.get(f"{PODS}/p")).body["status"]


@on_loop
async def test_a_kind_that_nobody_acts_on_says_so_where_warnings_are_on() -> None:
    async with serving(Settings(drakit_warnings=True)) as api:
        answer = await api.create(place("statefulsets"), neighbour("statefulsets"))
        assert answer.response.warnings == ("statefulsets are stored, and no controller of drakit acts on them",)
        assert (await api.create(place("jobs"), neighbour("jobs"))).response.warnings == ()
        again = await api.patch(f"{place('statefulsets')}/x", {"metadata": {"labels": {"a": "b"}}})
        assert again.response.warnings == ()
    async with serving() as api:
        assert (await api.create(place("statefulsets"), neighbour("statefulsets"))).response.warnings == ()


TEMPLATE: Plain = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}


@on_loop
async def test_claims_of_a_stateful_set_say_what_they_are() -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    async with serving() as api:
        claims = [{"metadata": {"name": "v"}, "spec": spec}]
        whole = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE, "volumeClaimTemplates": claims}
        stored = await made(api, "statefulsets", spec=whole)
        (claim,) = stored["spec"]["volumeClaimTemplates"]
        assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")


@on_loop
async def test_a_daemon_set_counts_the_changes_of_its_template() -> None:
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
    path, name = "/apis/apps/v1/namespaces/default/daemonsets", "deprecated.daemonset.template.generation"
    async with serving() as api:
        made_ = (await api.create(path, {"metadata": {"name": "d"}, "spec": spec})).body
        assert made_["metadata"]["annotations"] == {name: "1"}
        labelled = (await api.patch(f"{path}/d", {"metadata": {"labels": {"x": "y"}}})).body
        assert labelled["metadata"]["annotations"] == {name: "1"}
        change = {"spec": {"template": {"spec": {"hostNetwork": True}}}}
        assert (await api.patch(f"{path}/d", change)).body["metadata"]["annotations"] == {name: "2"}


@on_loop
async def test_a_job_without_labels_has_those_of_its_pods() -> None:
    async with serving() as api:
        stored = await made(api, "jobs")
        labels = stored["spec"]["template"]["metadata"]["labels"]
        assert labels["batch.kubernetes.io/job-name"] == stored["metadata"]["name"]
        assert stored["metadata"]["labels"] == labels


@pytest.mark.parametrize(
    ("path", "document", "warning"),
    [
        (
            "/api/v1/namespaces/default/endpoints",
            {"kind": "Endpoints", "apiVersion": "v1", "metadata": {"name": "e"}},
            "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice",
        ),
        (
            "/api/v1/namespaces/default/services",
            {"kind": "Service", "apiVersion": "v1", "metadata": {"name": "s"},
             "spec": {"ports": [{"port": 80}], "externalIPs": ["192.0.2.1"]}},
            "spec.externalIPs is deprecated and may no longer be implemented in some clusters",
        ),
        (
            "/apis/storage.k8s.io/v1/csidrivers",
            {"kind": "CSIDriver", "apiVersion": "storage.k8s.io/v1", "metadata": {"name": "d"},
             "spec": {"tokenRequests": [{"audience": "a"}]}},
            "spec.serviceAccountTokenInSecrets is unset",
        ),
    ],
)  # fmt: skip
@on_loop
async def test_what_upstream_warns_of_is_warned_of(path: str, document: Plain, warning: str) -> None:
    async with serving() as api:
        made = await api.create(path, document)
        assert made.code == 201
        assert [each.startswith(warning) for each in made.response.warnings] == [True]


@on_loop
async def test_a_creator_owns_no_status_and_the_parts_of_a_claim_reference_one_by_one() -> None:
    async with serving() as api:
        spec = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"},
                "claimRef": {"namespace": "default", "name": "c"}}  # fmt: skip
        volume = {"kind": "PersistentVolume", "apiVersion": "v1", "metadata": {"name": "v"}, "spec": spec}
        made = await api.create("/api/v1/persistentvolumes", volume, fieldManager="me")
        (entry,) = made.body["metadata"]["managedFields"]
        assert set(entry["fieldsV1"]) == {"f:spec"}
        assert entry["fieldsV1"]["f:spec"]["f:claimRef"] == {".": {}, "f:name": {}, "f:namespace": {}}


@on_loop
async def test_an_endpoint_slice_loses_the_topology_of_an_older_version() -> None:
    async with serving() as api:
        endpoint = {"addresses": ["10.0.0.1"], "deprecatedTopology": {"a": "b"}}
        made = await api.create(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            {"kind": "EndpointSlice", "apiVersion": "discovery.k8s.io/v1", "metadata": {"name": "e"},
             "addressType": "IPv4", "endpoints": [endpoint]},
        )  # fmt: skip
        assert "deprecatedTopology" not in made.body["endpoints"][0]
