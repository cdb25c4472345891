"""What no server says: each warning of lint, with a text that has it and one that has not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from drakit.api.text.yamldump import dump_yaml
from drakit.base.gates import FeatureGates
from drakit.lint import Finding, Report, Severity, lint
from drakit.lint.attributes import Name, names_in
from tests.builders.documents import claim_document, class_document, pod_document, request_of

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
DRIVER = "gpu.example.com"


def check(*documents: dict[str, Any], gates: FeatureGates | None = None) -> Report:
    text = "---\n".join(map(dump_yaml, documents))
    return lint({"it.yaml": text}, gates=gates or FeatureGates.all_on(), now=NOW)


def warnings(*documents: dict[str, Any]) -> list[tuple[str, str]]:
    report = check(*documents)
    assert report.errors == 0, report.findings
    return [(finding.rule, finding.path) for finding in report.findings]


def device_slice(
    *devices: dict[str, Any], name: str = "s", node: str | None = "node-a", version: str = "v1", **pool: Any
) -> dict[str, Any]:
    where: dict[str, Any] = {"nodeName": node} if node else {"allNodes": True}
    spec = {
        "driver": DRIVER,
        "pool": {"name": name, "generation": 1, "resourceSliceCount": 1, **pool},
        **where,
        "devices": list(devices),
    }
    api = f"resource.k8s.io/{version}"
    return {"apiVersion": api, "kind": "ResourceSlice", "metadata": {"name": f"slice-{name}"}, "spec": spec}


def gpu(name: str, model: str = "a100", numa: int = 0) -> dict[str, Any]:
    attributes = {"model": {"string": model}, "numa": {"int": numa}}
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}


def gpu_class(name: str = "gpu", expression: str | None = None, **spec: Any) -> dict[str, Any]:
    return class_document(name, *([expression] if expression else []), fields=spec)


def gpu_claim(
    expression: str | None = None, *, count: int = 1, constraints: Any = (), exactly: Any = None
) -> dict[str, Any]:
    asked = request_of("r", "gpu", expression=expression or "", **{"count": count, **(exactly or {})})
    return claim_document("c", asked, constraints=constraints)


EXPRESSION = "spec.devices.requests[0].exactly.selectors[0].cel.expression"


def test_good_manifests_have_no_findings() -> None:
    model = f'device.attributes["{DRIVER}"].model == "a100"'
    assert warnings(device_slice(gpu("d0"), gpu("d1")), gpu_class("gpu", "true"), gpu_claim(model, count=2)) == []


def test_a_selector_that_matches_nothing() -> None:
    model = f'device.attributes["{DRIVER}"].model == "h100"'
    found = warnings(device_slice(gpu("d0")), gpu_claim(model))
    assert found == [("selector-matches-nothing", EXPRESSION)]
    assert warnings(gpu_claim(model)) == []


def test_a_selector_that_only_fails_says_why() -> None:
    report = check(device_slice(gpu("d0")), gpu_claim(f'device.attributes["{DRIVER}"].modell == "a100"'))
    unknown, nothing = report.findings
    assert (unknown.rule, nothing.rule) == ("unknown-attribute", "selector-matches-nothing")
    assert unknown.message == (
        f'no device of the slices has attribute "{DRIVER}/modell"; the nearest is "{DRIVER}/model"'
    )
    assert nothing.message.startswith("matches none of the 1 devices in the slices: no such key: modell")


def test_selectors_of_classes_and_rules_are_looked_at_too() -> None:
    never = 'device.driver == "other"'
    spec = {"deviceSelector": {"selectors": [{"cel": {"expression": never}}]}, "taint": {"key": "k", "effect": "None"}}
    rule = {
        "apiVersion": "resource.k8s.io/v1beta2",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": spec,
    }
    assert warnings(device_slice(gpu("d0")), gpu_class("gpu", never), rule) == [
        ("selector-matches-nothing", "spec.selectors[0].cel.expression"),
        ("selector-matches-nothing", "spec.deviceSelector.selectors[0].cel.expression"),
    ]


def test_selectors_that_match_apart_but_not_together() -> None:
    first = f'device.attributes["{DRIVER}"].model == "a100"'
    second = f'device.attributes["{DRIVER}"].model == "h100"'
    found = warnings(device_slice(gpu("d0"), gpu("d1", "h100")), gpu_class("gpu", first), gpu_claim(second))
    assert found == [("request-matches-nothing", "spec.devices.requests[0].exactly")]


def test_a_class_that_is_not_there() -> None:
    assert warnings(gpu_class("other"), gpu_claim()) == [
        ("unknown-class", "spec.devices.requests[0].exactly.deviceClassName")
    ]
    assert warnings(gpu_claim()) == []


def test_a_count_that_no_node_has() -> None:
    nodes = (device_slice(gpu("d0"), name="a"), device_slice(gpu("d0"), gpu("d1"), name="b", node="node-b"))
    assert warnings(*nodes, gpu_claim(count=2)) == []
    report = check(*nodes, gpu_claim(count=3))
    (finding,) = report.findings
    assert (finding.rule, finding.path) == ("count-too-large", "spec.devices.requests[0].exactly.count")
    assert finding.message == "asks for 3, but no node has so many devices that match: node-b has 2"


def test_devices_that_every_node_sees_count_everywhere() -> None:
    shared = device_slice(gpu("d0"), name="a", node=None)
    assert warnings(shared, device_slice(gpu("d0"), name="b"), gpu_claim(count=2)) == []
    assert warnings(shared, gpu_claim(count=2)) == [("count-too-large", "spec.devices.requests[0].exactly.count")]


def test_a_device_for_several_claims_is_never_too_few() -> None:
    nic = {"name": "n", "allowMultipleAllocations": True}
    assert warnings(device_slice(nic), gpu_claim(count=9)) == []


def test_a_constraint_with_neither_attribute_is_told_in_words_that_fit() -> None:
    report = check(gpu_class(), gpu_claim(count=2, constraints=[{}]))
    told = [each.message for each in report.findings if each.rule == "constraint-neither"]
    assert told == ["has neither matchAttribute nor distinctAttribute: write one of them"]
    assert report.errors == 1


def test_a_constraint_that_cannot_hold() -> None:
    same = {"matchAttribute": f"{DRIVER}/numa"}
    apart = device_slice(gpu("d0", numa=0), gpu("d1", numa=1))
    together = device_slice(gpu("d0"), gpu("d1"))
    assert warnings(together, gpu_class(), gpu_claim(count=2, constraints=[same])) == []
    assert warnings(apart, gpu_class(), gpu_claim(count=2, constraints=[same])) == [
        ("impossible-constraint", "spec.devices.constraints[0]")
    ]


def test_constraints_that_cannot_hold_together() -> None:
    devices = device_slice(gpu("d0", "a100", 0), gpu("d1", "h100", 0), gpu("d2", "h100", 1))
    both = [{"matchAttribute": f"{DRIVER}/numa"}, {"matchAttribute": f"{DRIVER}/model"}]
    assert warnings(devices, gpu_class(), gpu_claim(count=2, constraints=both)) == [
        ("impossible-constraint", "spec.devices.constraints")
    ]


def test_names_in_constraints_and_capacity_requests() -> None:
    bad = gpu_claim(
        constraints=[{"matchAttribute": f"{DRIVER}/numma"}], exactly={"capacity": {"requests": {"mem": "1"}}}
    )
    assert sorted(warnings(device_slice(gpu("d0")), bad)) == [
        ("unknown-attribute", "spec.devices.constraints[0].matchAttribute"),
        ("unknown-attribute", "spec.devices.requests[0].exactly.capacity.requests[mem]"),
    ]
    good = gpu_claim(
        constraints=[{"matchAttribute": f"{DRIVER}/numa"}], exactly={"capacity": {"requests": {"memory": "1"}}}
    )
    assert warnings(device_slice(gpu("d0")), good) == []


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([device_slice(gpu("d0"), resourceSliceCount=2)], "1 of its 2 slices are published"),
        (
            [device_slice(gpu("d0")), {**device_slice(gpu("d1")), "metadata": {"name": "more"}}],
            "it has 2 slices, more than its resourceSliceCount 1",
        ),
        (
            [
                device_slice(gpu("d0"), resourceSliceCount=2),
                {**device_slice(gpu("d1"), resourceSliceCount=3), "metadata": {"name": "more"}},
            ],
            "its slices disagree on resourceSliceCount: 2, 3",
        ),
        (
            [
                device_slice(gpu("d0"), resourceSliceCount=2),
                {**device_slice(gpu("d0"), resourceSliceCount=2), "metadata": {"name": "more"}},
            ],
            "duplicate device name d0",
        ),
    ],
)
def test_slices_of_one_pool_that_disagree(slices: list[dict[str, Any]], reason: str) -> None:
    (finding,) = check(*slices).findings
    assert (finding.rule, finding.path) == ("pool-disagrees", "spec.pool")
    assert finding.message == f"pool s of driver {DRIVER} cannot be used: {reason}"


def test_slices_of_an_older_generation() -> None:
    old = {**device_slice(gpu("d0"), generation=0), "metadata": {"name": "old"}}
    assert warnings(device_slice(gpu("d0")), old) == [("pool-disagrees", "spec.pool.generation")]


def test_an_extended_resource_name_of_two_classes() -> None:
    name = {"extendedResourceName": "example.com/gpu"}
    found = warnings(gpu_class("a", **name), gpu_class("b", **name), gpu_class("c"))
    assert found == [("extended-resource-twice", "spec.extendedResourceName")] * 2


@pytest.mark.parametrize(
    ("version", "expected"), [("v1", []), ("v1beta2", ["apiVersion"]), ("v1beta1", ["apiVersion"])]
)
def test_a_version_that_will_go_away(version: str, expected: list[str]) -> None:
    slice_ = device_slice(version=version)
    assert warnings(slice_) == [("deprecated-version", path) for path in expected]


def test_an_object_with_two_contents() -> None:
    assert warnings(gpu_class("a"), gpu_class("a")) == []
    assert warnings(gpu_class("a"), gpu_class("a", "true")) == [("repeated-object", "metadata.name")]


def test_fields_of_features_that_are_off() -> None:
    report = check(gpu_class("a", extendedResourceName="a.b/c"), gates=FeatureGates.of({"DRAExtendedResource": False}))
    assert [finding.rule for finding in report.findings] == ["dropped-field"]


def test_kinds_that_are_none_of_ours_are_passed_over() -> None:
    other = {"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": {"name": "d"}, "spec": {"anything": 1}}
    report = check(other, gpu_class())
    assert (report.checked, report.skipped, report.findings) == (1, 1, ())


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('device.attributes["a.b"].c == 1', [("attribute", "a.b/c")]),
        ("device.attributes['a.b'].?c.orValue(1) == 1", [("attribute", "a.b/c")]),
        ('device.attributes["a.b"]["c"] == 1 && has(device.attributes["a.b"].d)', ["a.b/c", "a.b/d"]),
        ('device.capacity["a.b"].m.compareTo(quantity("1")) >= 0', [("capacity", "a.b/m")]),
        ('cel.bind(x, device.attributes["a.b"], x.c == 1 && x.?d.hasValue())', ["a.b/c", "a.b/d"]),
        ('device.attributes["a.b"].exists(k, k == "c")', []),
        ('device.driver == "d" // device.attributes["a.b"].c', []),
    ],
)
def test_names_that_an_expression_reads(text: str, names: list[Any]) -> None:
    wanted = [Name("attribute", name) if isinstance(name, str) else Name(*name) for name in names]
    assert names_in(text) == wanted


def test_findings_tell_where_they_are_in_the_text() -> None:
    text = "\n".join(
        (
            "apiVersion: v1",
            "kind: List",
            "items:",
            "- apiVersion: resource.k8s.io/v1beta1",
            "  kind: ResourceClaim",
            "  metadata: {name: c}",
            "  spec:",
            "    devices:",
            "      requests:",
            "      - name: r",
            "        deviceClassName: gpu",
            "        count: -1",
            "        nonsense: true",
        )
    )
    report = lint({"a.yaml": text}, gates=FeatureGates.all_on(), now=NOW)
    assert [(each.line, each.column, each.severity, each.rule) for each in report.findings] == [
        (4, 3, Severity.WARNING, "deprecated-version"),
        (12, 9, Severity.ERROR, "invalid"),
        (13, 9, Severity.ERROR, "unknown-field"),
    ]
    assert str(report.findings[1]) == (
        "a.yaml:12:9: error: ResourceClaim default/c: spec.devices.requests[0].exactly.count: "
        "Invalid value: -1: must be greater than zero [invalid]"
    )


def test_what_cannot_be_decoded_is_an_error_with_its_place() -> None:
    text = '{"apiVersion": "resource.k8s.io/v1",\n "kind": "DeviceClass",\n "spec": {"selectors": {}}}'
    wrong = lint({"a.json": text}, gates=FeatureGates.all_on(), now=NOW)
    assert [(each.rule, each.line) for each in wrong.findings] == [("wrong-type", 3)]
    unknown = check({"apiVersion": "resource.k8s.io/v9", "kind": "DeviceClass"}, {"a": 1})
    assert [finding.rule for finding in unknown.findings] == ["unknown-kind", "unknown-kind"]


def test_a_text_that_is_no_text_does_not_hide_the_others() -> None:
    texts = {"bad.yaml": "a: [", "good.yaml": dump_yaml(gpu_class("A"))}
    report = lint(texts, gates=FeatureGates.all_on(), now=NOW)
    assert len(report.unread) == 1
    assert "bad.yaml" in report.unread[0]
    assert [finding.source for finding in report.findings] == ["good.yaml"]


def test_the_status_of_a_saved_claim_is_checked() -> None:
    result = {"request": "x", "driver": DRIVER, "pool": "p", "device": "d"}
    saved = {**gpu_claim(), "status": {"allocation": {"devices": {"results": [result]}}}}
    assert [finding.path for finding in check(saved).findings] == ["status.allocation.devices.results[0].request"]


def test_a_finding_without_a_place_names_its_text() -> None:
    finding = Finding(severity=Severity.WARNING, rule="r", source="s", message="m")
    assert str(finding) == "s: warning: m [r]"


def test_an_object_that_cannot_be_read_is_called_by_its_name() -> None:
    (finding,) = check(gpu_claim(exactly={"count": "two"})).findings
    assert (finding.object, finding.rule) == ("ResourceClaim c", "wrong-type")
    (finding,) = check({"apiVersion": "resource.k8s.io/v1", "kind": "Klaim", "metadata": ["c"]}).findings
    assert (finding.object, finding.rule) == ("Klaim", "unknown-kind")


def test_a_saved_status_that_no_server_would_take_is_an_error_and_no_crash() -> None:
    stranger = {"driver": DRIVER, "pool": "p", "device": "d"}
    report = check({**gpu_claim(), "status": {"devices": [stranger]}})
    assert [(finding.severity, finding.path) for finding in report.findings] == [(Severity.ERROR, "status.devices[0]")]


def test_the_status_of_a_saved_pod_is_judged_too() -> None:
    spec = {"containers": [{"name": "c", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    wrong = {"phase": "Running", "resourceClaimStatuses": [{"name": "gpu"}]}
    assert check({**pod, "status": {"phase": "Running", "qosClass": "BestEffort"}}).findings == ()
    (finding,) = check({**pod, "status": wrong}).findings
    assert (finding.severity, finding.path) == (Severity.ERROR, "status.resourceClaimStatuses[0].name")


def test_a_count_is_not_too_large_where_nodes_are_selected_by_labels_and_none_is_given() -> None:
    terms = [{"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}]
    wide = device_slice({"name": "a"}, {"name": "b"}, node=None)
    del wide["spec"]["allNodes"]
    wide["spec"]["nodeSelector"] = {"nodeSelectorTerms": terms}
    assert warnings(wide, gpu_claim(count=2)) == []


def test_an_implicit_name_of_a_class_that_is_not_there_is_named() -> None:
    pod = pod_document("p")
    name = "deviceclass.resource.kubernetes.io/missing"
    pod["spec"]["containers"][0]["resources"] = {"requests": {name: "1"}, "limits": {name: "1"}}
    path = f"spec.containers[0].resources.requests[{name}]"
    assert warnings(class_document("gpu"), pod) == [("unknown-class", path)]


def test_a_node_with_plugin_and_slices_for_one_name_is_named() -> None:
    named = class_document("gpu", fields={"extendedResourceName": "example.com/gpu"})
    node = {
        "apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-a"},
        "status": {"allocatable": {"example.com/gpu": "2", "cpu": "4"}},
    }  # fmt: skip
    found = [("extended-resource-by-both", "status.allocatable[example.com/gpu]")]
    assert warnings(named, node, device_slice({"name": "a"})) == found
    assert warnings(named, node, device_slice({"name": "a"}, node="node-b")) == []


def asking_pod(amount: str, name: str = "example.com/gpu") -> dict[str, Any]:
    pod = pod_document("p")
    pod["spec"]["containers"][0]["resources"] = {"requests": {name: amount}, "limits": {name: amount}}
    return pod


def node_with(name: str = "node-a", **allocatable: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": allocatable}}


@pytest.mark.parametrize("name", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_a_pod_that_asks_for_more_of_an_extended_resource_than_any_node_has_is_named(name: str) -> None:
    named = class_document("gpu", fields={"extendedResourceName": "example.com/gpu"})
    two = device_slice({"name": "a"}, {"name": "b"})
    found = [("count-too-large", f"spec.containers[0].resources.requests[{name}]")]
    assert warnings(named, two, asking_pod("3", name)) == found
    assert warnings(named, two, asking_pod("2", name)) == []
    assert warnings(named, asking_pod("3", name)) == []
    plugin = node_with("node-b", **{name: "3"})
    assert warnings(named, two, plugin, asking_pod("3", name)) == []


def test_a_device_that_takes_more_than_its_node_has_is_named() -> None:
    by_device = {"name": "a", "nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "8"}}}
    capacity = {"memory": {"value": "64Gi"}}
    by_amount = {
        "name": "b", "capacity": capacity, "nodeAllocatableResourceMappings": {"memory": {"capacityKey": "memory"}},
    }  # fmt: skip
    published = device_slice(by_device, by_amount)
    place = "spec.devices[{}].nodeAllocatableResourceMappings[{}]".format
    found = [("device-too-large", place(0, "cpu")), ("device-too-large", place(1, "memory"))]
    assert warnings(published, node_with(cpu="4", memory="32Gi")) == found
    assert warnings(published, node_with(cpu="8", memory="64Gi")) == []
    assert warnings(published) == []
    assert warnings(device_slice({**by_amount, "allowMultipleAllocations": True}), node_with(memory="1Gi")) == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("pcieRoot", {"int": 3}), ("pcieRoot", {"string": "root-1"}), ("pciBusID", {"string": "3b:00"})],
)
def test_a_standard_attribute_of_another_form_is_named(name: str, value: dict[str, Any]) -> None:
    key = f"resource.kubernetes.io/{name}"
    found = warnings(device_slice({"name": "a", "attributes": {key: value}}))
    assert found == [("standard-attribute", f"spec.devices[0].attributes[{key}]")]


def test_standard_attributes_of_their_form_are_not_named() -> None:
    attributes = {
        "resource.kubernetes.io/pcieRoot": {"string": "pci0000:00"},
        "resource.kubernetes.io/pciBusID": {"string": "0000:3b:00.0"},
    }
    assert warnings(device_slice({"name": "a", "attributes": attributes})) == []
