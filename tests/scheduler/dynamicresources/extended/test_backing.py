from __future__ import annotations

from drakit.api import DeviceClass, DeviceClassSpec, ObjectMeta
from drakit.scheduler.dynamicresources.extended.backing import Backing, is_extended

GPU = "example.com/gpu"


def backing_class(name: str, resource: str | None = None, made: str = "2026-01-01T00:00:00Z") -> DeviceClass:
    return DeviceClass(
        metadata=ObjectMeta(name=name, creation_timestamp=made), spec=DeviceClassSpec(extended_resource_name=resource)
    )


def name_of(backing: Backing, resource: str) -> str | None:
    found = backing.class_of(resource)
    return found.metadata.name if found else None


def test_a_class_backs_the_resource_that_it_names_and_its_implicit_one() -> None:
    backing = Backing()
    backing.put(backing_class("gpu.example.com", GPU))
    assert name_of(backing, GPU) == "gpu.example.com"
    assert name_of(backing, "deviceclass.resource.kubernetes.io/gpu.example.com") == "gpu.example.com"


def test_a_class_without_a_resource_name_has_the_implicit_one_only() -> None:
    backing = Backing()
    backing.put(backing_class("gpu"))
    assert name_of(backing, "deviceclass.resource.kubernetes.io/gpu") == "gpu"
    assert name_of(backing, "gpu") is None
    assert name_of(backing, "deviceclass.resource.kubernetes.io/other") is None


def test_the_newest_class_wins_in_whatever_order_they_are_seen() -> None:
    old, new = backing_class("a", GPU, "2026-01-01T00:00:00Z"), backing_class("z", GPU, "2026-01-01T00:00:01Z")
    for order in ((old, new), (new, old)):
        backing = Backing()
        for each in order:
            backing.put(each)
        assert name_of(backing, GPU) == "z"


def test_of_classes_made_at_the_same_time_the_first_name_wins() -> None:
    for order in (("a", "b", "c"), ("c", "b", "a"), ("b", "a", "c")):
        backing = Backing()
        for name in order:
            backing.put(backing_class(name, GPU))
        assert name_of(backing, GPU) == "a"


def test_the_older_class_has_the_resource_again_when_the_newer_one_goes_or_lets_go_of_it() -> None:
    backing = Backing()
    backing.put(backing_class("old", GPU, "2026-01-01T00:00:00Z"))
    backing.put(backing_class("new", GPU, "2026-01-02T00:00:00Z"))
    backing.put(backing_class("new", None, "2026-01-02T00:00:00Z"))
    assert name_of(backing, GPU) == "old"
    backing.put(backing_class("new", GPU, "2026-01-02T00:00:00Z"))
    assert name_of(backing, GPU) == "new"
    backing.remove("new")
    assert name_of(backing, GPU) == "old"


def test_the_newer_class_keeps_the_resource_when_the_older_one_goes() -> None:
    backing = Backing()
    backing.put(backing_class("old", GPU, "2026-01-01T00:00:00Z"))
    backing.put(backing_class("new", GPU, "2026-01-02T00:00:00Z"))
    backing.remove("old")
    assert name_of(backing, GPU) == "new"


def test_a_class_that_takes_another_name_gives_up_the_first() -> None:
    backing = Backing()
    backing.put(backing_class("gpu", GPU))
    backing.put(backing_class("gpu", "example.com/accelerator"))
    assert name_of(backing, GPU) is None
    assert name_of(backing, "example.com/accelerator") == "gpu"


def test_no_class_backs_anything_when_all_are_gone() -> None:
    backing = Backing()
    backing.put(backing_class("gpu", GPU))
    backing.remove("gpu")
    backing.remove("gpu")
    assert name_of(backing, GPU) is None
    assert name_of(backing, "deviceclass.resource.kubernetes.io/gpu") is None


def test_extended_resources_are_told_by_their_names() -> None:
    assert is_extended(GPU)
    assert is_extended("deviceclass.resource.kubernetes.io/gpu")
    for native in ("cpu", "hugepages-2Mi", "kubernetes.io/batch", "requests.example.com/gpu"):
        assert not is_extended(native)
