"""What is found as sets of nodes is what a walk from field to field finds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.apiserver.patching.atoms import Atom, atom_of
from drakit.apiserver.patching.comparing import compare
from drakit.apiserver.patching.fieldsets import FieldSet, paths
from drakit.apiserver.patching.ownership import WriteTarget, own_update
from drakit.apiserver.patching.reach import reach_of
from drakit.apiserver.patching.tracking import convert_version
from tests.apiserver.patching.walked import Walk

_NAMES = (
    "metadata", "spec", "status", "containers", "name", "ports", "containerPort", "protocol", "conditions", "type",
    "annotations", "labels", "finalizers", "ownerReferences", "uid", "devices", "requests", "exactly", "reservedFor",
    "tolerations", "key", "nodeSelector", "resourceClaims",
)  # fmt: skip
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.text("ab", max_size=2))
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(st.dictionaries(st.sampled_from(_NAMES), inner, max_size=4), st.lists(inner, max_size=3)),
    max_leaves=25,
)
_DOCUMENTS = st.dictionaries(st.sampled_from(("metadata", "spec", "status")), _VALUES, max_size=3)
_ATOMS = st.sampled_from((("v1", "Pod"), ("resource.k8s.io/v1", "ResourceClaim")))


def is_sorted(fields: FieldSet) -> bool:
    return list(fields) == sorted(fields) and all(map(is_sorted, fields.values()))


@given(_DOCUMENTS, _DOCUMENTS, _ATOMS)
def test_fields_that_differ_are_those_that_a_walk_from_field_to_field_finds(
    before: dict[str, Any], after: dict[str, Any], kind: tuple[str, str]
) -> None:
    atom: Atom = atom_of(*kind)
    changes, walk = compare(atom, before, after), Walk(atom, before, after)
    assert set(paths(changes.changed)) == walk.added | walk.modified
    assert set(paths(changes.removed)) == walk.removed
    assert is_sorted(changes.changed)
    assert is_sorted(changes.removed)


@given(_DOCUMENTS, _DOCUMENTS, _ATOMS, st.sampled_from(["", "status", "resize", "binding"]))
def test_an_update_takes_the_fields_that_differ_and_that_it_reaches(
    before: dict[str, Any], after: dict[str, Any], kind: tuple[str, str], subresource: str
) -> None:
    reach = reach_of(kind[1], subresource)
    _, taken = own_update(WriteTarget(*kind, reach, convert_version), before, after, {})
    assert json.dumps(taken) == json.dumps(reach.limit(compare(atom_of(*kind), before, after).changed))


@pytest.mark.parametrize(
    ("after", "taken"),
    [
        ({"spec": {"nodeName": "a"}}, {"f:spec": {"f:nodeName": {}}}),
        (
            {"spec": {"containers": [{"name": "c"}]}},
            {"f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:name": {}}}}},
        ),
        ({"spec": {"containers": None}}, {}),
    ],
)
def test_taken_fields_are_told_from_those_that_an_empty_object_has(
    after: dict[str, Any], taken: dict[str, Any]
) -> None:
    assert compare(atom_of("v1", "Pod"), {"spec": {"containers": None}}, after).changed == taken
