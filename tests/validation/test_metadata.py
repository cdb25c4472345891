"""Object metadata, on kinds of every scope."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from drakit.api import Partial, Pod
from drakit.base.fields import Path
from drakit.validation import check_field_manager, validate_create, validate_update
from tests.validation.objects import defaulted_claim, defaulted_class, defaulted_pod, device_slice, made, told


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"name": "", "generateName": "x-"}, []),
        ({"name": ""}, [("metadata.name", "Required")]),
        ({"name": "", "generateName": "X_"}, [("metadata.generateName", "Invalid")]),
        ({"namespace": "A"}, [("metadata.namespace", "Invalid")]),
        ({"namespace": ""}, [("metadata.namespace", "Required")]),
        ({"generation": -1}, [("metadata.generation", "Invalid")]),
        ({"labels": {"a": "b c"}}, [("metadata.labels", "Invalid")]),
        ({"annotations": {"Upper.Case/x": "any value at all!"}}, []),
        ({"annotations": {"a": "x" * 262144}}, [("metadata.annotations", "TooLong")]),
        ({"finalizers": ["kubernetes", "a.b/c"]}, []),
        ({"finalizers": ["orphan", "foregroundDeletion"]}, [("metadata.finalizers", "Invalid")]),
        ({"managedFields": [{"operation": "Patch"}]}, [("metadata.managedFields[0].operation", "NotSupported")]),
        (
            {"managedFields": [{"manager": "m" * 129, "fieldsType": "F", "subresource": "s" * 257}]},
            [
                ("metadata.managedFields[0].operation", "Required"),
                ("metadata.managedFields[0].fieldsType", "Invalid"),
                ("metadata.managedFields[0].manager", "TooLong"),
                ("metadata.managedFields[0].subresource", "TooLong"),
            ],
        ),
    ],
)
def test_metadata_of_a_new_object(metadata: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    assert told(validate_create(defaulted_claim(metadata=metadata))) == expected


def _owner(**changes: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "n", "uid": "u", **changes}


@pytest.mark.parametrize(
    ("owners", "expected"),
    [
        ([_owner()], []),
        ([_owner(apiVersion="a/b/c")], [("metadata.ownerReferences.apiVersion", "Invalid")]),
        ([_owner(apiVersion="apps/")], [("metadata.ownerReferences.apiVersion", "Invalid")]),
        ([_owner(apiVersion="v1", kind="Event")], [("metadata.ownerReferences", "Invalid")]),
        ([_owner(controller=True), _owner(controller=True, name="m")], [("metadata.ownerReferences", "Invalid")]),
    ],
)
def test_owners_of_a_new_object(owners: list[dict[str, Any]], expected: list[tuple[str, str]]) -> None:
    assert told(validate_create(defaulted_claim(metadata={"ownerReferences": owners}))) == expected


def test_a_cluster_object_has_no_namespace() -> None:
    errors = validate_create(made("DeviceClass", {"metadata": {"namespace": "ns"}, "spec": {}}))
    assert told(errors) == [("metadata.namespace", "Forbidden")]


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"name": "other"}, "metadata.name"),
        ({"namespace": "other"}, "metadata.namespace"),
        ({"uid": "other"}, "metadata.uid"),
        ({"creation_timestamp": "2026-01-01T00:00:00Z"}, "metadata.creationTimestamp"),
        ({"deletion_timestamp": "2026-01-01T00:00:00Z"}, "metadata.deletionTimestamp"),
        ({"deletion_grace_period_seconds": 3}, "metadata.deletionGracePeriodSeconds"),
        ({"generation": 1}, "metadata.generation"),
    ],
)
def test_an_update_cannot_change_what_an_object_is(changes: dict[str, Any], path: str) -> None:
    old = defaulted_claim(metadata={"uid": "u", "generation": 2})
    new = replace(old, metadata=replace(old.metadata, **changes))
    assert told(validate_update(new, old)) == [(path, "Invalid")] * 2, "as often as Kubernetes tells it"


def test_no_finalizer_is_added_to_an_object_that_goes_away() -> None:
    old = defaulted_claim(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a.b/c"]})
    new = replace(old, metadata=replace(old.metadata, finalizers=("a.b/c", "a.b/d")))
    error, again = validate_update(new, old)
    assert error == again
    assert error.detail.endswith('found new finalizers []string{"a.b/d"}')
    assert validate_update(replace(old, metadata=replace(old.metadata, finalizers=())), old) == ()


def test_a_field_manager_is_printable_and_short() -> None:
    assert list(check_field_manager("kubectl", Path("fieldManager"))) == []
    (error,) = check_field_manager("a\x07", Path("fieldManager"))
    assert error.detail == "invalid character U+0007 (at position 1)"


def test_a_class_keeps_selectors_that_an_older_server_let_in() -> None:
    selectors = [{"cel": {"expression": "no such thing"}}]
    old = defaulted_class(selectors=selectors)
    assert told(validate_create(old)) == [("spec.selectors[0].cel.expression", "Invalid")]
    assert validate_update(defaulted_class(selectors=selectors, extendedResourceName="a.b/c"), old) == ()
    reordered = defaulted_class(selectors=[{"cel": {"expression": "true"}}, *selectors])
    assert told(validate_update(reordered, old)) == [("spec.selectors[1].cel.expression", "Invalid")]


def test_a_class_keeps_parameters_that_were_too_large_when_limits_came() -> None:
    config = [{"opaque": {"driver": "a.b", "parameters": {"x": "y" * 20000}}}]
    old = defaulted_class(config=config)
    assert told(validate_create(old)) == [("spec.config[0].opaque.parameters", "TooLong")]
    assert validate_update(defaulted_class(config=config, extendedResourceName="a.b/c"), old) == ()


@pytest.mark.parametrize("finalizers", [("a b/c",), ("orphan", "foregroundDeletion")])
def test_finalizers_of_claims_classes_and_pods_are_judged_again_in_every_update(finalizers: tuple[str, ...]) -> None:
    olds = (defaulted_claim(), defaulted_class(), defaulted_pod())
    for old in olds:
        if isinstance(old, Partial):
            meta = {**old.document["metadata"], "finalizers": list(finalizers)}
            new: Any = Partial.of(Pod, {**old.document, "metadata": meta})
        else:
            new = replace(old, metadata=replace(old.metadata, finalizers=finalizers))
        assert told(validate_update(new, old)) == [("metadata.finalizers", "Invalid")] * 2


def test_of_a_class_the_name_is_judged_and_not_the_prefix_that_it_was_made_of() -> None:
    named = made("DeviceClass", {"metadata": {"name": "Bad_x7k2p", "generateName": "Bad_"}})
    assert told(validate_create(named)) == [("metadata.name", "Invalid")]
    slice_ = device_slice()
    both = replace(slice_, metadata=named.metadata)
    assert told(validate_create(both)) == [("metadata.generateName", "Invalid"), ("metadata.name", "Invalid")]


def test_of_very_many_errors_the_first_are_told_and_that_there_are_more() -> None:
    many = {f"!{number}": "" for number in range(5000)}
    errors = validate_create(defaulted_claim(metadata={"labels": many}))
    assert len(errors) == 1001
    assert errors[0].path == Path("metadata.labels")
    assert (str(errors[-1].path), errors[-1].detail) == (
        "",
        "more is wrong than this: only the first 1000 errors are told",
    )
    exactly = defaulted_claim(metadata={"finalizers": [f"unqualified{number}" for number in range(1000)]})
    assert {str(error.kind) for error in validate_create(exactly)} == {str(errors[0].kind)}


def test_a_list_of_owners_is_shown_once_though_many_of_them_control() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "uid": "u", "controller": True}
    owners = [{**owner, "name": f"p{number}"} for number in range(200)]
    errors = validate_create(defaulted_claim(metadata={"ownerReferences": owners}))
    assert len(errors) == 199
    assert {str(error.path) for error in errors} == {"metadata.ownerReferences"}
    assert sum(len(str(error)) for error in errors) < 200 * 1000


def test_an_update_that_breaks_only_a_rule_for_names_is_refused() -> None:
    old = defaulted_claim(metadata={"uid": "u"})
    new = replace(old, metadata=replace(old.metadata, generate_name="Bad_", labels={"a b": "c"}))
    assert ("metadata.generateName", "Invalid") in told(validate_update(new, old))
