"""LimitRanges and runtime classes are applied to pods that are made."""

from __future__ import annotations

from typing import Any

from tests.apiserver.calls import PODS, Api, on_loop, serving
from tests.apiserver.neighbours import Plain, collection, neighbour
from tests.builders.documents import pod_document


async def limited(api: Api, *items: Plain) -> None:
    made = await api.create(collection("limitranges"), neighbour("limitranges", spec={"limits": list(items)}))
    assert made.code == 201, made.body


def asking(**resources: Any) -> Plain:
    made = pod_document("p")
    made["spec"]["containers"] = [{"name": "c", "image": "i", "resources": resources}]
    return made


@on_loop
async def test_containers_get_the_defaults_of_their_namespace_and_the_pod_says_so() -> None:
    async with serving() as api:
        await limited(api, {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "500m"}})
        made = (await api.create(PODS, asking())).body
        assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}
        told = made["metadata"]["annotations"]["kubernetes.io/limit-ranger"]
        assert told == "LimitRanger plugin set: cpu request for container c; cpu limit for container c"
        assert made["status"]["qosClass"] == "Burstable"


@on_loop
async def test_a_container_beyond_the_range_is_refused_with_every_reason() -> None:
    async with serving() as api:
        await limited(api, {"type": "Container", "max": {"cpu": "1"}, "min": {"memory": "1Gi"}})
        big = asking(limits={"cpu": "2", "memory": "512Mi"})
        refused = await api.create(PODS, big)
        assert refused.code == 403
        assert "maximum cpu usage per Container is 1, but limit is 2" in refused.message
        assert "minimum memory usage per Container is 1Gi, but request is 512Mi" in refused.message


@on_loop
async def test_a_pod_is_measured_whole() -> None:
    async with serving() as api:
        await limited(api, {"type": "Pod", "max": {"cpu": "1"}})
        two = asking(limits={"cpu": "800m"})
        two["spec"]["containers"].append({**two["spec"]["containers"][0], "name": "d"})
        assert "maximum cpu usage per Pod is 1, but limit is 1600m" in (await api.create(PODS, two)).message
        assert "maximum cpu usage per Pod is 1.  No limit is specified" in (await api.create(PODS, asking())).message


@on_loop
async def test_a_volume_claim_may_ask_for_so_much() -> None:
    async with serving() as api:
        await limited(api, {"type": "PersistentVolumeClaim", "max": {"storage": "512Mi"}})
        refused = await api.create(collection("persistentvolumeclaims"), neighbour("persistentvolumeclaims"))
        assert "maximum storage usage per PersistentVolumeClaim is 512Mi, but request is 1Gi" in refused.message


@on_loop
async def test_limits_that_contradict_each_other_are_refused() -> None:
    async with serving() as api:
        item = {"type": "Container", "min": {"cpu": "2"}, "max": {"cpu": "1"}}
        answer = await api.create(collection("limitranges"), neighbour("limitranges", spec={"limits": [item]}))
        assert answer.code == 422
        assert "spec.limits[0].min[cpu]" in answer.message
        assert "min value 2 is greater than max value 1" in answer.message


def pod_with(**spec: Any) -> Plain:
    made = pod_document("p")
    return {**made, "spec": {**made["spec"], **spec}}


async def classed(api: Api, **content: Any) -> None:
    where = collection("runtimeclasses", namespaced=False)
    assert (await api.create(where, neighbour("runtimeclasses", **content))).code == 201


@on_loop
async def test_a_runtime_class_gives_overhead_and_a_place() -> None:
    async with serving() as api:
        toleration = {"key": "sandbox", "operator": "Exists"}
        scheduling = {"nodeSelector": {"sandbox": "yes"}, "tolerations": [toleration]}
        await classed(api, overhead={"podFixed": {"cpu": "250m"}}, scheduling=scheduling)
        answer = await api.create(PODS, pod_with(runtimeClassName="x", nodeSelector={"zone": "a"}))
        made = answer.body["spec"]
        assert made["overhead"] == {"cpu": "250m"}
        assert made["nodeSelector"] == {"sandbox": "yes", "zone": "a"}
        assert toleration in made["tolerations"]


@on_loop
async def test_a_pod_that_contradicts_its_runtime_class_is_refused() -> None:
    async with serving() as api:
        await classed(api, overhead={"podFixed": {"cpu": "250m"}}, scheduling={"nodeSelector": {"sandbox": "yes"}})
        for spec, why in (
            ({"runtimeClassName": "nothing"}, 'RuntimeClass "nothing" not found'),
            ({"runtimeClassName": "x", "overhead": {"cpu": "1"}}, "doesn't match RuntimeClass's defined Overhead"),
            ({"overhead": {"cpu": "1"}}, "Pod Overhead set without corresponding RuntimeClass defined Overhead"),
            ({"runtimeClassName": "x", "nodeSelector": {"sandbox": "no"}}, "conflict: runtimeClass.scheduling"),
        ):
            refused = await api.create(PODS, pod_with(**spec))
            assert refused.code == 403
            assert why in refused.message
