"""The cache: what is found by key, by namespace and by index is always the same set of objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drakit.api import ObjectMeta, OwnerReference, ResourceClaim
from drakit.base.errors import UsageError
from drakit.client import Key, key_of
from drakit.informers import ObjectCache, by_controller, by_label, by_owner, by_uid

TEAM = by_label("team")


def owned_claim(name: str, namespace: str = "a", *, team: str = "", owners: tuple[str, ...] = ()) -> ResourceClaim:
    references = tuple(OwnerReference(uid=uid, controller=index == 0 or None) for index, uid in enumerate(owners))
    labels = {"team": team} if team else {}
    metadata = ObjectMeta(name=name, namespace=namespace, uid=f"uid-{name}", labels=labels, owner_references=references)
    return ResourceClaim(metadata=metadata)


def filled(*objects: ResourceClaim) -> ObjectCache[ResourceClaim]:
    cache: ObjectCache[ResourceClaim] = ObjectCache()
    for each in objects:
        cache.put(key_of(each), each)
    return cache


def test_an_object_is_found_by_key_and_is_the_very_object() -> None:
    one = owned_claim("one")
    cache = filled(one, owned_claim("two", "b"))
    assert cache.get(Key("a", "one")) is one
    assert cache.named("one", "a") is one
    assert cache.get(Key("b", "one")) is None
    assert cache.all("b") == [owned_claim("two", "b")]
    assert len(cache.all()) == len(cache) == 2
    assert Key("a", "one") in cache


def test_indexes_follow_changes() -> None:
    cache = filled(owned_claim("one", team="x", owners=("p1", "p2")))
    for name, function in (("team", TEAM), ("owner", by_owner), ("controller", by_controller), ("uid", by_uid)):
        cache.add_index(name, function)
    assert cache.keys_by("owner", "p2") == [Key("a", "one")]
    assert cache.by("controller", "p2") == []
    moved = owned_claim("one", team="y", owners=("p1",))
    assert cache.put(key_of(moved), moved) == owned_claim("one", team="x", owners=("p1", "p2"))
    assert (cache.by("team", "x"), cache.by("team", "y")) == ([], [moved])
    assert cache.by("owner", "p1") == [moved]
    assert cache.by("uid", "uid-one")[0] is moved
    cache.remove(Key("a", "one"))
    assert cache.by("team", "y") == cache.by("owner", "p1") == []
    assert cache.remove(Key("a", "one")) is None


def test_an_index_has_one_meaning() -> None:
    cache = filled()
    cache.add_index("team", TEAM)
    cache.add_index("team", TEAM)
    with pytest.raises(UsageError, match="means something else"):
        cache.add_index("team", by_owner)
    with pytest.raises(UsageError, match="there is no index 'nope'"):
        cache.by("nope", 1)


STEPS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("mn"), st.sampled_from(["", "x", "y", None])), max_size=40
)


@given(STEPS)
def test_indexes_agree_with_looking_at_every_object(steps: list[tuple[str, str, str | None]]) -> None:
    cache: ObjectCache[ResourceClaim] = ObjectCache()
    cache.add_index("team", TEAM)
    model: dict[Key, ResourceClaim] = {}
    for name, namespace, team in steps:
        key = Key(namespace, name)
        if team is None:
            assert cache.remove(key) == model.pop(key, None)
        else:
            model[key] = owned_claim(name, namespace, team=team)
            cache.put(key, model[key])
        for wanted in "xy":
            expected = {key for key, each in model.items() if each.metadata.labels.get("team") == wanted}
            assert set(cache.keys_by("team", wanted)) == expected
        for place in "mn":
            assert {key_of(each) for each in cache.all(place)} == {key for key in model if key.namespace == place}
    assert dict(zip(cache.keys(), cache, strict=True)) == model
